// What an edge costs, and the two walks of the objective, over nodes in breadth-first order: the
// children of a node then stand side by side, so that both walks stream through flat arrays.
#include "daemon/tree/tree_metrics.h"

#include <algorithm>
#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/tree/even_routes.h"

namespace coppice {
namespace {

// The tree's nodes in breadth-first order; those at positions [first[p], first[p] + count[p]) are
// the children of the node at position p, in order of node number.
struct BreadthFirst {
  std::vector<uint32_t> node, first, count;
};

BreadthFirst Order(const AggregationTree& tree) {
  const ChildLists lists = ChildrenOf(tree.parents);
  const uint32_t nodes = tree.node_count();
  BreadthFirst order;
  order.node.reserve(nodes);
  order.first.resize(nodes);
  order.count.resize(nodes);
  order.node.push_back(tree.root());
  for (uint32_t p = 0; p < order.node.size(); ++p) {
    const absl::Span<const uint32_t> children = lists.of(order.node[p]);
    order.first[p] = static_cast<uint32_t>(order.node.size());
    order.count[p] = static_cast<uint32_t>(children.size());
    order.node.insert(order.node.end(), children.begin(), children.end());
  }
  return order;
}

struct Packet {
  double arrival_us;
  double spacing_us;  // least time from the start of the packet before it
  uint32_t node;
  bool operator<(const Packet& other) const {
    return arrival_us != other.arrival_us ? arrival_us < other.arrival_us : node < other.node;
  }
};

class MetricsWalker {
 public:
  MetricsWalker(const CostProfile& profile, const AggregationTree& tree,
                absl::Span<const EdgeCost> edges)
      : profile_(profile), tree_(tree), edges_(edges), order_(Order(tree)) {}

  // The distribution is left out where more than `cutoff_us` is reached without it.
  Prediction Predict(const Payload& payload, double cutoff_us) {
    const Pipeline pipeline = PipelineOf(profile_, payload);
    const Payload& packet = pipeline.packet;
    Prediction prediction;
    prediction.aggregate_us = Aggregate(packet.up_bytes, packet.reduced_bytes);
    prediction.total_us = profile_.init_us + prediction.aggregate_us;
    if (prediction.total_us <= cutoff_us) prediction.distribute_us = Distribute(packet.down_bytes);
    prediction.total_us += prediction.distribute_us;
    if (!pipeline.is_one_packet()) {
      pipeline.AddPackets(SlowestStages(profile_, tree_, edges_, packet), prediction);
    }
    return prediction;
  }

 private:
  const NodeCost& CostOf(uint32_t node) const {
    return tree_.IsRank(node) ? profile_.nic : profile_.switch_;
  }

  // From being handed on by a node of `cost` to arrival at the other end.
  double EdgeUs(const NodeCost& cost, uint64_t bytes, uint32_t links, double links_us,
                double min_gbps) const {
    if (links == 0) return links_us;  // within a host
    const double serialisation =
        profile_.forward_includes_serialisation ? 0 : SerialisationUs(bytes, min_gbps);
    return cost.ForwardUs(bytes) + links_us + serialisation;
  }

  // done(root). Positions run backwards: children before their parents.
  double Aggregate(uint64_t bytes, uint64_t reduced_bytes) {
    packets_.resize(order_.node.size());
    double done = 0;
    for (size_t p = order_.node.size(); p-- > 0;) {
      const uint32_t node = order_.node[p];
      const NodeCost& cost = CostOf(node);
      done = 0;
      if (order_.count[p] > 0) {
        const auto begin = packets_.begin() + order_.first[p];
        const auto end = begin + order_.count[p];
        if (!std::is_sorted(begin, end)) std::sort(begin, end);
        double start = begin->arrival_us;
        for (auto packet = begin + 1; packet != end; ++packet) {
          start = std::max(packet->arrival_us, start + packet->spacing_us);
        }
        done = start + cost.MatchUs(reduced_bytes);
      }
      if (p == 0) break;
      const EdgeCost& edge = edges_[node];
      const double parent_match = CostOf(tree_.parents[node]).MatchUs(reduced_bytes);
      packets_[p] = {
          .arrival_us =
              done + EdgeUs(cost, bytes, edge.links_up, edge.time_up_us, edge.min_gbps_up),
          .spacing_us = std::max(parent_match, WireUs(profile_, bytes, edge.port_gbps_up)),
          .node = node};
    }
    return done;
  }

  // The last node's time of receipt.
  double Distribute(uint64_t bytes) {
    ready_us_.assign(order_.node.size(), 0);
    double last = 0;
    for (size_t p = 0; p < order_.node.size(); ++p) {
      const NodeCost& cost = CostOf(order_.node[p]);
      double start = ready_us_[p];
      last = std::max(last, start);
      for (uint32_t c = order_.first[p]; c < order_.first[p] + order_.count[p]; ++c) {
        const EdgeCost& edge = edges_[order_.node[c]];
        ready_us_[c] = start + cost.send_us +
                       EdgeUs(cost, bytes, edge.links_down, edge.time_down_us, edge.min_gbps_down);
        start += std::max(cost.send_us, WireUs(profile_, bytes, edge.port_gbps_down));
      }
    }
    return last;
  }

  const CostProfile& profile_;
  const AggregationTree& tree_;
  absl::Span<const EdgeCost> edges_;
  BreadthFirst order_;
  std::vector<Packet> packets_;   // [position]
  std::vector<double> ready_us_;  // [position]
};

}  // namespace

Prediction Evaluate(const CostProfile& profile, const AggregationTree& tree,
                    absl::Span<const EdgeCost> edges, const Payload& payload) {
  if (tree.parents.empty()) return {};
  return MetricsWalker(profile, tree, edges).Predict(payload, kNoCutoff);
}

Prediction EvaluateMix(const CostProfile& profile, const AggregationTree& tree,
                       absl::Span<const EdgeCost> edges, const CollectiveMix& mix,
                       double cutoff_us) {
  if (tree.parents.empty() || mix.sizes.empty()) return {};
  const double one_cutoff_us = mix.sizes.size() == 1 ? cutoff_us : kNoCutoff;
  MetricsWalker walker(profile, tree, edges);
  return MeanOver(mix,
                  [&](const Payload& payload) { return walker.Predict(payload, one_cutoff_us); });
}

namespace {

uint64_t PacketsAfterFirst(uint64_t bytes, uint64_t mtu) {
  return mtu == 0 || bytes <= mtu ? 0 : (bytes - 1) / mtu;
}

}  // namespace

Pipeline PipelineOf(const CostProfile& profile, const Payload& payload) {
  const uint64_t mtu = profile.mtu_bytes;
  Pipeline pipeline;
  pipeline.more_up = PacketsAfterFirst(payload.up_bytes, mtu);
  pipeline.more_down = PacketsAfterFirst(payload.down_bytes, mtu);
  pipeline.streams = pipeline.more_up == pipeline.more_down;
  pipeline.packet = payload;
  if (pipeline.more_up > 0) {
    // Of every packet the same share is reduced: mostly all or nothing.
    const double share =
        static_cast<double>(payload.reduced_bytes) / static_cast<double>(payload.up_bytes);
    pipeline.packet.up_bytes = mtu;
    pipeline.packet.reduced_bytes = static_cast<uint64_t>(share * static_cast<double>(mtu));
  }
  if (pipeline.more_down > 0) pipeline.packet.down_bytes = mtu;
  return pipeline;
}

Stages SlowestStages(const CostProfile& profile, const AggregationTree& tree,
                     absl::Span<const EdgeCost> edges, const Payload& packet) {
  struct Busy {  // what one packet of everybody costs a node
    double up_us = 0, down_us = 0, enter_us = 0, leave_us = 0;
    bool has_port_in_use = false;
  };
  std::vector<Busy> busy(tree.node_count());
  Stages slowest;
  for (uint32_t child = 0; child < tree.node_count(); ++child) {
    if (tree.parents[child] == AggregationTree::kNoParent) continue;
    const auto node = static_cast<uint32_t>(tree.parents[child]);
    const NodeCost& cost = tree.IsRank(node) ? profile.nic : profile.switch_;
    const EdgeCost& edge = edges[child];
    const double match_us = cost.MatchUs(packet.reduced_bytes);
    const double enter_us = WireUs(profile, packet.up_bytes, edge.port_gbps_up);
    const double leave_us = WireUs(profile, packet.down_bytes, edge.port_gbps_down);
    Busy& at = busy[node];
    at.up_us += std::max(match_us, enter_us);
    at.down_us += std::max(cost.send_us, leave_us);
    slowest.up_us =
        std::max({slowest.up_us, at.up_us, WireUs(profile, packet.up_bytes, edge.min_gbps_up)});
    slowest.down_us = std::max(
        {slowest.down_us, at.down_us, WireUs(profile, packet.down_bytes, edge.min_gbps_down)});
    if (!tree.IsRank(node)) continue;  // a switch has a port for every link
    at.enter_us += enter_us;
    at.leave_us += leave_us;
    if (edge.links_up > 0 && !at.has_port_in_use) {
      at.has_port_in_use = true;
      const bool has_parent = tree.parents[node] != AggregationTree::kNoParent;
      if (has_parent && edges[node].links_up > 0) {  // through the same port
        at.enter_us += WireUs(profile, packet.down_bytes, edge.port_gbps_up);
        at.leave_us += WireUs(profile, packet.up_bytes, edge.port_gbps_down);
      }
    }
    slowest.port_us = std::max({slowest.port_us, at.enter_us, at.leave_us});
  }
  return slowest;
}

double Pipeline::TotalUs(const Stages& stages) const {
  const auto up = static_cast<double>(more_up), down = static_cast<double>(more_down);
  if (!streams) return up * stages.up_us + down * stages.down_us;
  return up * std::max({stages.up_us, stages.down_us, stages.port_us});
}

void Pipeline::AddPackets(const Stages& stages, Prediction& first) const {
  const double up_us = streams ? std::max(stages.up_us, stages.port_us) : stages.up_us;
  const double aggregate_us = static_cast<double>(more_up) * up_us, total_us = TotalUs(stages);
  first.aggregate_us += aggregate_us;
  first.distribute_us += total_us - aggregate_us;
  first.total_us += total_us;
}

uint32_t Radius(const AggregationTree& tree, absl::Span<const EdgeCost> edges) {
  return LongestWay(tree, [&](uint32_t node) { return edges[node].links_up; });
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
  EvenRoutes even(snapshot, profile);
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
