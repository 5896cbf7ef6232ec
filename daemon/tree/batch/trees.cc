#include "daemon/tree/batch/trees.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/contended_metrics.h"
#include "daemon/tree/link_use.h"
#include "daemon/tree/member_places.h"
#include "daemon/tree/planner.h"
#include "daemon/tree/type2_candidate.h"

namespace coppice {
namespace {

// One rank: it is its own root, and nobody serves.
RankTree Alone(const Fabric& fabric, Members members) {
  RankTree result;
  result.tree = RanksOnly(fabric, members);
  result.tree.parents = {AggregationTree::kNoParent};
  result.physical.root = result.tree.vertices[0];
  result.physical.vertices = {result.physical.root};
  result.physical.parents = {-1};
  result.physical.up = {kNoChannel};
  return result;
}

// The switches of `batch`, then the endpoints below their leaf switches.
PhysicalTree WithEndpoints(const Fabric& fabric, const MemberPlaces& places,
                           const SwitchTree& switches) {
  PhysicalTree physical;
  const size_t size = switches.switches.size() + places.endpoints.size();
  physical.vertices.reserve(size);
  physical.root = fabric.Vertex(switches.root());
  std::vector<int32_t> position(places.leaf_switches.size(), -1);
  for (size_t v = 0; v < switches.switches.size(); ++v) {
    physical.vertices.push_back(fabric.Vertex(switches.switches[v]));
    if (switches.ranks_on[v] == 0) continue;
    const auto leaf = std::lower_bound(places.leaf_switches.begin(), places.leaf_switches.end(),
                                       switches.switches[v]);
    position[static_cast<size_t>(leaf - places.leaf_switches.begin())] = static_cast<int32_t>(v);
  }
  physical.parents = switches.parents;
  physical.up = switches.up;
  physical.parents.reserve(size);
  physical.up.reserve(size);
  for (size_t e = 0; e < places.endpoints.size(); ++e) {
    physical.vertices.push_back(fabric.Vertex(places.endpoints[e]));
    physical.parents.push_back(position[places.leaf_of_endpoint[e]]);
    physical.up.push_back(fabric.uplink(places.endpoints[e]));
  }
  return physical;
}

}  // namespace

absl::StatusOr<RankTree> HangBatchTree(const Snapshot& snapshot,
                                       absl::Span<const SwitchCapacity> capacity, Members members,
                                       const BatchTree& batch) {
  const Fabric& fabric = *snapshot.fabric;
  ASSIGN_OR_RETURN(const MemberPlaces places, FindMemberPlaces(snapshot, members));
  if (batch.physical.switches.empty()) return Alone(fabric, members);
  RankTree result;
  result.physical = WithEndpoints(fabric, places, batch.physical);
  const size_t switches = batch.physical.switches.size();
  std::vector<uint32_t> ranks(switches, 0), degrees(result.physical.vertices.size(), 0);
  ranks.insert(ranks.end(), places.ranks_at.begin(), places.ranks_at.end());
  for (const uint32_t v : batch.serving) {
    degrees[v] = capacity[batch.physical.switches[v].value()].degree_limit;
  }
  result.tree = HangRanks(fabric, members, places, result.physical, ranks, degrees, batch.serving);
  return result;
}

absl::StatusOr<TreePlan> PlanOfBatchTree(const Snapshot& snapshot, const CostProfile& profile,
                                         absl::Span<const SwitchCapacity> capacity,
                                         const TreeRequest& request, const BatchTree& batch) {
  ASSIGN_OR_RETURN(RankTree ranks, HangBatchTree(snapshot, capacity, request.members, batch));
  TreePlan plan;
  plan.tree = std::move(ranks.tree);
  plan.physical = std::move(ranks.physical);
  const Snapshot predicting = ForPrediction(snapshot, profile);
  ASSIGN_OR_RETURN(plan.edges, EdgeCosts(predicting, profile, plan.tree));
  plan.predicted = EvaluateMix(profile, plan.tree, plan.edges, request.operation, request.sizes);
  RETURN_IF_ERROR(AddContention(predicting, profile, plan.tree, plan.edges, request.operation,
                                request.sizes, plan.predicted));
  plan.height = Height(plan.tree);
  plan.radius = Radius(plan.tree, plan.edges);
  plan.reason = absl::StrCat(
      Figure(plan.tree, plan.predicted), "; planned in one batch",
      batch.extra_hops > 0 ? absl::StrCat(", its root ", batch.extra_hops,
                                          " hop(s) farther than the nearest, which were full or "
                                          "could not serve so many")
                           : "");
  return plan;
}

}  // namespace coppice
