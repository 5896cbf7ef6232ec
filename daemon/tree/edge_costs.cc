// The cost of each edge of a tree, from the routes that its packets take: walked link by link, or
// by hops alone where all shortest routes cost the same (even_routes.h).
#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/tree/even_routes.h"
#include "daemon/tree/tree_metrics.h"

namespace coppice {
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
