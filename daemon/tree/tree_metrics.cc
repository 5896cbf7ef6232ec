// The two walks of the objective, over nodes in breadth-first order: the children of a node then
// stand side by side, so that both walks stream through flat arrays.
#include "daemon/tree/tree_metrics.h"

#include <algorithm>
#include <numeric>

#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr double kMostUtilisation = 0.99;

// Microseconds that `bytes` take at `gbps`; 0 where the rate is unknown.
double TransferUs(uint64_t bytes, double gbps) {
  return gbps > 0 ? static_cast<double>(bytes) * 8e-3 / gbps : 0;
}

struct RouteCost {
  uint32_t links = 0;
  double time_us = 0, min_gbps = 0, first_gbps = 0, last_gbps = 0;
};

double CapacityOf(const Snapshot& snapshot, const CostProfile& profile, ChannelIndex channel) {
  const double known = snapshot.fabric->capacity_gbps(channel);
  return known > 0 ? known : profile.port_gbps;
}

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
    const double gbps = CapacityOf(snapshot, profile, channel);
    const double u = std::clamp<double>(snapshot.utilisation(channel), 0, kMostUtilisation);
    cost.time_us += profile.link_us;
    if (u > 0) cost.time_us += TransferUs(profile.mtu_bytes, gbps) * u / (2 * (1 - u));
    if (gbps > 0 && (cost.min_gbps == 0 || gbps < cost.min_gbps)) cost.min_gbps = gbps;
    if (channel == path.front()) cost.first_gbps = gbps;
    cost.last_gbps = gbps;
  }
  return cost;
}

// What edges cost where it does not matter which of the shortest routes a packet takes: on a fabric
// without load whose links between switches are all of one capacity. Then hops say everything, and
// both directions are alike:
//
//     child --(its own link)-- switch --(hops links of one capacity)-- switch --(its own)-- parent
//
// The sums are taken in the order of the walk, so that the result is the same to the last bit.
class EvenRoutes {
 public:
  // Reads the capacity of every link: worth it for a tree that is not small beside the fabric.
  EvenRoutes(const Snapshot& snapshot, const CostProfile& profile, const AggregationTree& tree)
      : snapshot_(snapshot),
        fabric_(*snapshot.fabric),
        profile_(profile),
        applies_(snapshot.routes->kind() == RouteKind::kShortestPath && snapshot.load->empty() &&
                 fabric_.link_count() / kLinksPerNode <= tree.node_count() && LinksAreAlike()) {}

  // False: the route has to be walked, to know its cost or why there is none.
  bool Find(VertexIndex child, VertexIndex parent, EdgeCost& edge) const {
    if (!applies_) return false;
    if (child == parent || OnOneHost(child, parent)) {
      edge.time_up_us = edge.time_down_us = static_cast<float>(profile_.same_host_us);
      return true;
    }
    const Place from = PlaceOf(child), to = PlaceOf(parent);
    if (!from.known || !to.known) return false;
    const uint8_t hops = snapshot_.routes->distances().Between(from.at, to.at);
    if (hops == SwitchDistances::kUnreachable) return false;
    const uint32_t links = from.links + hops + to.links;
    double time_us = 0;
    for (uint32_t l = 0; l < links; ++l) time_us += profile_.link_us;
    const double between = hops > 0 ? gbps_ : 0;
    const double port = to.links > 0 ? to.gbps : hops > 0 ? between : from.gbps;
    edge.links_up = edge.links_down = links;
    edge.time_up_us = edge.time_down_us = static_cast<float>(time_us);
    edge.min_gbps_up = edge.min_gbps_down =
        static_cast<float>(LeastKnown(LeastKnown(from.gbps, between), to.gbps));
    edge.port_gbps_up = edge.port_gbps_down = static_cast<float>(port);
    return true;
  }

 private:
  static constexpr uint32_t kLinksPerNode = 32;

  // Where a vertex meets the switches; an endpoint has one link there, a switch none.
  struct Place {
    bool known = false;
    SwitchIndex at;
    uint32_t links = 0;
    double gbps = 0;
  };

  static double LeastKnown(double a, double b) {
    if (a == 0 || b == 0) return a + b;
    return std::min(a, b);
  }

  bool OnOneHost(VertexIndex a, VertexIndex b) const {
    return !fabric_.IsSwitch(a) && !fabric_.IsSwitch(b) &&
           fabric_.host(fabric_.AsEndpoint(a)) == fabric_.host(fabric_.AsEndpoint(b));
  }

  Place PlaceOf(VertexIndex v) const {
    if (fabric_.IsSwitch(v)) return {true, fabric_.AsSwitch(v), 0, 0};
    const Channel& up = fabric_.channels(v).front();
    if (!fabric_.IsSwitch(up.to)) return {};
    return {true, fabric_.AsSwitch(up.to), 1, CapacityOf(snapshot_, profile_, up.index)};
  }

  // Sets gbps_ if all links between switches are of one capacity.
  bool LinksAreAlike() {
    bool first = true;
    for (uint32_t l = 0; l < fabric_.link_count(); ++l) {
      if (!fabric_.IsSwitch(fabric_.link(LinkIndex(l)).b)) continue;  // b is the higher vertex
      const double gbps = CapacityOf(snapshot_, profile_, ChannelIndex(2 * l));
      if (!first && gbps != gbps_) return false;
      gbps_ = gbps;
      first = false;
    }
    return true;
  }

  const Snapshot& snapshot_;
  const Fabric& fabric_;
  const CostProfile& profile_;
  double gbps_ = 0;  // of every link between switches; before applies_, which sets it
  const bool applies_;
};

// The tree's nodes in breadth-first order; those at positions [first[p], first[p] + count[p]) are
// the children of the node at position p, in order of node number.
struct BreadthFirst {
  std::vector<uint32_t> node, first, count;
};

// True if the nodes are numbered breadth first already, as those of a k-ary tree are.
bool IsBreadthFirst(absl::Span<const int32_t> parents) {
  if (parents[0] != AggregationTree::kNoParent) return false;
  int32_t last = 0;
  for (size_t node = 1; node < parents.size(); ++node) {
    if (parents[node] < last || parents[node] >= static_cast<int32_t>(node)) return false;
    last = parents[node];
  }
  return true;
}

BreadthFirst AsNumbered(absl::Span<const int32_t> parents) {
  BreadthFirst order;
  order.node.resize(parents.size());
  std::iota(order.node.begin(), order.node.end(), 0U);
  order.count.assign(parents.size(), 0);
  for (size_t node = 1; node < parents.size(); ++node) ++order.count[parents[node]];
  order.first.resize(parents.size());
  uint32_t next = 1;
  for (size_t p = 0; p < parents.size(); ++p) {
    order.first[p] = next;
    next += order.count[p];
  }
  return order;
}

BreadthFirst Order(const AggregationTree& tree) {
  if (IsBreadthFirst(tree.parents)) return AsNumbered(tree.parents);
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

class Walker {
 public:
  Walker(const CostProfile& profile, const AggregationTree& tree, absl::Span<const EdgeCost> edges)
      : profile_(profile), tree_(tree), edges_(edges), order_(Order(tree)) {}

  Prediction Predict(const Payload& payload) {
    Prediction prediction;
    prediction.aggregate_us = Aggregate(payload.up_bytes, payload.reduced_bytes);
    prediction.distribute_us = Distribute(payload.down_bytes);
    prediction.total_us = profile_.init_us + prediction.aggregate_us + prediction.distribute_us;
    return prediction;
  }

 private:
  const NodeCost& CostOf(uint32_t node) const {
    return tree_.IsRank(node) ? profile_.nic : profile_.switch_;
  }

  static double ForwardUs(const NodeCost& cost, uint64_t bytes) {
    return cost.forward_us + static_cast<double>(bytes) * cost.forward_us_per_byte;
  }

  double SerialisationUs(uint64_t bytes, double min_gbps) const {
    return profile_.forward_includes_serialisation ? 0 : TransferUs(bytes, min_gbps);
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
        done = start + MatchUs(cost, reduced_bytes);
      }
      if (p == 0) break;
      const EdgeCost& edge = edges_[node];
      const double parent_match = MatchUs(CostOf(tree_.parents[node]), reduced_bytes);
      packets_[p] = {.arrival_us = done + ForwardUs(cost, bytes) + edge.time_up_us +
                                   SerialisationUs(bytes, edge.min_gbps_up),
                     .spacing_us = std::max(parent_match, TransferUs(bytes, edge.port_gbps_up)),
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
      const double forward = ForwardUs(cost, bytes);
      double start = ready_us_[p];
      last = std::max(last, start);
      for (uint32_t c = order_.first[p]; c < order_.first[p] + order_.count[p]; ++c) {
        const EdgeCost& edge = edges_[order_.node[c]];
        ready_us_[c] = start + cost.send_us + forward + edge.time_down_us +
                       SerialisationUs(bytes, edge.min_gbps_down);
        start += std::max(cost.send_us, TransferUs(bytes, edge.port_gbps_down));
      }
    }
    return last;
  }

  static double MatchUs(const NodeCost& cost, uint64_t reduced_bytes) {
    return cost.match_us + static_cast<double>(reduced_bytes) * cost.reduce_us_per_byte;
  }

  const CostProfile& profile_;
  const AggregationTree& tree_;
  absl::Span<const EdgeCost> edges_;
  BreadthFirst order_;
  std::vector<Packet> packets_;   // [position]
  std::vector<double> ready_us_;  // [position]
};

}  // namespace

absl::Status EdgeCosts(const Snapshot& snapshot, const CostProfile& profile,
                       const AggregationTree& tree, std::vector<ChannelIndex>& path,
                       std::vector<EdgeCost>& edges) {
  const EvenRoutes even(snapshot, profile, tree);
  edges.assign(tree.node_count(), EdgeCost{});
  for (uint32_t node = 0; node < tree.node_count(); ++node) {
    if (tree.parents[node] == AggregationTree::kNoParent) continue;
    const VertexIndex child = tree.vertices[node];
    const VertexIndex parent = tree.vertices[tree.parents[node]];
    if (even.Find(child, parent, edges[node])) continue;
    path.clear();
    RETURN_IF_ERROR(snapshot.routes->Append(child, parent, path));
    const RouteCost up = CostOfRoute(snapshot, profile, path);
    path.clear();
    RETURN_IF_ERROR(snapshot.routes->Append(parent, child, path));
    const RouteCost down = CostOfRoute(snapshot, profile, path);
    edges[node] = {.links_up = up.links,
                   .links_down = down.links,
                   .time_up_us = static_cast<float>(up.time_us),
                   .time_down_us = static_cast<float>(down.time_us),
                   .min_gbps_up = static_cast<float>(up.min_gbps),
                   .min_gbps_down = static_cast<float>(down.min_gbps),
                   .port_gbps_up = static_cast<float>(up.last_gbps),
                   .port_gbps_down = static_cast<float>(down.first_gbps)};
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

Prediction Evaluate(const CostProfile& profile, const AggregationTree& tree,
                    absl::Span<const EdgeCost> edges, const Payload& payload) {
  if (tree.parents.empty()) return {};
  return Walker(profile, tree, edges).Predict(payload);
}

Prediction EvaluateMix(const CostProfile& profile, const AggregationTree& tree,
                       absl::Span<const EdgeCost> edges, Operation operation,
                       absl::Span<const SizeShare> sizes) {
  if (tree.parents.empty() || sizes.empty()) return {};
  Walker walker(profile, tree, edges);
  double total_weight = 0;
  for (const SizeShare& share : sizes) total_weight += share.weight;
  Prediction mean;
  for (const SizeShare& share : sizes) {
    const double weight =
        total_weight > 0 ? share.weight / total_weight : 1.0 / static_cast<double>(sizes.size());
    const Prediction one = walker.Predict(PayloadOf(operation, share.bytes));
    mean.aggregate_us += weight * one.aggregate_us;
    mean.distribute_us += weight * one.distribute_us;
    mean.total_us += weight * one.total_us;
  }
  return mean;
}

uint32_t Radius(const AggregationTree& tree, absl::Span<const EdgeCost> edges) {
  if (tree.parents.empty()) return 0;
  const BreadthFirst order = Order(tree);
  std::vector<uint32_t> links(order.node.size(), 0);
  uint32_t radius = 0;
  for (size_t p = 0; p < order.node.size(); ++p) {
    radius = std::max(radius, links[p]);
    for (uint32_t c = order.first[p]; c < order.first[p] + order.count[p]; ++c) {
      links[c] = links[p] + edges[order.node[c]].links_up;
    }
  }
  return radius;
}

}  // namespace coppice
