// What an edge costs, and the two walks of the objective. Both go over the inner nodes breadth
// first, and over the children of each in order of number; leaves cost nothing but their packet.
#include "daemon/tree/tree_metrics.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/tree/even_routes.h"
#include "daemon/tree/pipelining.h"

namespace coppice {

void TreeEvaluator::Take(const AggregationTree& tree, absl::Span<const EdgeCost> edges) {
  tree_ = &tree;
  edges_ = edges;
  root_ = tree.root();
  FindChildren(tree.parents, lists_);
  inner_.clear();
  if (tree.node_count() > 1) inner_.push_back(root_);
  for (size_t p = 0; p < inner_.size(); ++p) {
    for (const uint32_t child : lists_.of(inner_[p])) {
      if (lists_.begin[child] < lists_.begin[child + 1]) inner_.push_back(child);
    }
  }
}

Prediction TreeEvaluator::Of(const AggregationTree& tree, absl::Span<const EdgeCost> edges,
                             const Payload& payload, double cutoff_us) {
  if (tree.parents.empty()) return {};
  Take(tree, edges);
  return Walk(payload, cutoff_us);
}

Prediction TreeEvaluator::OfMix(const AggregationTree& tree, absl::Span<const EdgeCost> edges,
                                Operation operation, absl::Span<const SizeShare> sizes,
                                double cutoff_us) {
  if (tree.parents.empty() || sizes.empty()) return {};
  Take(tree, edges);
  const double one_cutoff_us = sizes.size() == 1 ? cutoff_us : kNoCutoff;
  return MeanOver(sizes,
                  [&](uint64_t bytes) { return Walk(PayloadOf(operation, bytes), one_cutoff_us); });
}

Prediction TreeEvaluator::Walk(const Payload& payload, double cutoff_us) {
  const Pipeline pipeline = PipelineOf(profile_, payload);
  const Payload& packet = pipeline.packet;
  Prediction prediction;
  prediction.aggregate_us = Aggregate(packet.up_bytes, packet.reduced_bytes);
  prediction.total_us = profile_.init_us + prediction.aggregate_us;
  if (prediction.total_us > cutoff_us) return prediction;
  prediction.distribute_us = Distribute(packet.down_bytes);
  prediction.total_us += prediction.distribute_us;
  if (!pipeline.is_one_packet()) {
    AddPackets(pipeline, SlowestStages(profile_, *tree_, edges_, packet), prediction);
  }
  return prediction;
}

// From being handed on by a node of `cost` to arrival at the other end.
inline double TreeEvaluator::EdgeUs(const NodeCost& cost, uint64_t bytes, uint32_t links,
                                    double links_us, double min_gbps) const {
  if (links == 0) return links_us;  // within a host
  const double forward_us = cost.forward_us + static_cast<double>(bytes) * cost.forward_us_per_byte;
  const double serialisation_us =
      profile_.forward_includes_serialisation ? 0 : SerialisationUs(bytes, min_gbps);
  return forward_us + links_us + serialisation_us;
}

// done(root).
double TreeEvaluator::Aggregate(uint64_t bytes, uint64_t reduced_bytes) {
  us_.assign(tree_->node_count(), 0);
  for (size_t p = inner_.size(); p-- > 0;) {
    const uint32_t node = inner_[p];
    const NodeCost& taker = CostOf(node);
    const double match_us =
        taker.match_us + static_cast<double>(reduced_bytes) * taker.reduce_us_per_byte;
    packets_.clear();
    for (const uint32_t child : lists_.of(node)) {
      const EdgeCost& edge = edges_[child];
      const double way_us =
          EdgeUs(CostOf(child), bytes, edge.links_up, edge.time_up_us, edge.min_gbps_up);
      packets_.push_back({us_[child] + way_us,
                          std::max(match_us, WireUs(profile_, bytes, edge.port_gbps_up)), child});
    }
    if (!std::is_sorted(packets_.begin(), packets_.end())) {
      std::sort(packets_.begin(), packets_.end());
    }
    double start_us = packets_.front().arrival_us;
    for (size_t i = 1; i < packets_.size(); ++i) {
      start_us = std::max(packets_[i].arrival_us, start_us + packets_[i].spacing_us);
    }
    us_[node] = start_us + match_us;
  }
  return us_[root_];
}

// The last node's time of receipt.
double TreeEvaluator::Distribute(uint64_t bytes) {
  us_[root_] = 0;
  double last_us = 0;
  for (const uint32_t node : inner_) {
    const NodeCost& cost = CostOf(node);
    double start_us = us_[node];
    for (const uint32_t child : lists_.of(node)) {
      const EdgeCost& edge = edges_[child];
      us_[child] = start_us + cost.send_us +
                   EdgeUs(cost, bytes, edge.links_down, edge.time_down_us, edge.min_gbps_down);
      last_us = std::max(last_us, us_[child]);
      start_us += std::max(cost.send_us, WireUs(profile_, bytes, edge.port_gbps_down));
    }
  }
  return last_us;
}

Prediction Evaluate(const CostProfile& profile, const AggregationTree& tree,
                    absl::Span<const EdgeCost> edges, const Payload& payload) {
  return TreeEvaluator(profile).Of(tree, edges, payload);
}

Prediction EvaluateMix(const CostProfile& profile, const AggregationTree& tree,
                       absl::Span<const EdgeCost> edges, Operation operation,
                       absl::Span<const SizeShare> sizes) {
  return TreeEvaluator(profile).OfMix(tree, edges, operation, sizes);
}

uint32_t Radius(const AggregationTree& tree, absl::Span<const EdgeCost> edges) {
  const ChildLists lists = ChildrenOf(tree.parents);
  std::vector<std::pair<uint32_t, uint32_t>> open;  // node, links from there to the root
  if (!tree.parents.empty()) open.emplace_back(tree.root(), 0);
  uint32_t radius = 0;
  while (!open.empty()) {
    const auto [node, links] = open.back();
    open.pop_back();
    radius = std::max(radius, links);
    for (const uint32_t child : lists.of(node)) {
      open.emplace_back(child, links + edges[child].links_up);
    }
  }
  return radius;
}

// The cost of each edge of a tree, from the routes that its packets take: walked link by link, or
// by hops alone where all shortest routes cost the same (even_routes.h).

namespace {

struct RouteCost {
  uint32_t links = 0;
  double time_us = 0, min_gbps = 0, first_gbps = 0, last_gbps = 0;
};

// Sums l + w(u) over `path`.
RouteCost CostOfRoute(const Snapshot& snapshot, const CostProfile& profile,
                      const std::vector<ChannelIndex>& path) {
  RouteCost cost;
  cost.links = static_cast<uint32_t>(path.size());
  if (path.empty()) {
    cost.time_us = profile.same_host_us;
    return cost;
  }
  for (const ChannelIndex channel : path) {
    const double gbps = KnownCapacity(snapshot, profile, channel);
    cost.time_us += profile.link_us;
    cost.time_us += WaitUs(snapshot, profile, channel);
    if (gbps > 0 && (cost.min_gbps == 0 || gbps < cost.min_gbps)) cost.min_gbps = gbps;
    if (channel == path.front()) cost.first_gbps = gbps;
    cost.last_gbps = gbps;
  }
  return cost;
}

}  // namespace

absl::Status WalkEdge(const Snapshot& snapshot, const CostProfile& profile, VertexIndex child,
                      VertexIndex parent, std::vector<ChannelIndex>& path, EdgeCost& edge) {
  path.clear();
  RETURN_IF_ERROR(snapshot.routes->Append(child, parent, path));
  const RouteCost up = CostOfRoute(snapshot, profile, path);
  path.clear();
  RETURN_IF_ERROR(snapshot.routes->Append(parent, child, path));
  const RouteCost down = CostOfRoute(snapshot, profile, path);
  edge = {.links_up = up.links,
          .links_down = down.links,
          .time_up_us = static_cast<float>(up.time_us),
          .time_down_us = static_cast<float>(down.time_us),
          .min_gbps_up = static_cast<float>(up.min_gbps),
          .min_gbps_down = static_cast<float>(down.min_gbps),
          .port_gbps_up = static_cast<float>(up.last_gbps),
          .port_gbps_down = static_cast<float>(down.first_gbps)};
  return absl::OkStatus();
}

absl::Status EdgeCosts(const Snapshot& snapshot, const CostProfile& profile,
                       const AggregationTree& tree, std::vector<ChannelIndex>& path,
                       std::vector<EdgeCost>& edges) {
  EvenRoutes even(snapshot, profile, tree);
  edges.assign(tree.node_count(), EdgeCost{});
  for (uint32_t node = 0; node < tree.node_count(); ++node) {
    if (tree.parents[node] == AggregationTree::kNoParent) continue;
    const VertexIndex child = tree.vertices[node];
    const VertexIndex parent = tree.vertices[tree.parents[node]];
    if (even.Find(child, parent, edges[node])) continue;
    RETURN_IF_ERROR(WalkEdge(snapshot, profile, child, parent, path, edges[node]));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<EdgeCost>> EdgeCosts(const Snapshot& snapshot,
                                                const CostProfile& profile,
                                                const AggregationTree& tree) {
  std::vector<ChannelIndex> path;
  std::vector<EdgeCost> edges;
  RETURN_IF_ERROR(EdgeCosts(snapshot, profile, tree, path, edges));
  return edges;
}

}  // namespace coppice
