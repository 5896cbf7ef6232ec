#include "tests/unit/tree/plan_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/contended_metrics.h"
#include "tests/support/tree_check.h"

namespace coppice {
namespace {

// The tree of the ranks that may serve children, which is the builder's; leaves hang below it.
AggregationTree WithoutLeaves(const AggregationTree& tree, absl::Span<const uint32_t> leaf_ranks) {
  std::vector<int32_t> number(tree.rank_count, -1);
  AggregationTree rest = tree;
  rest.parents.clear();
  rest.vertices.clear();
  for (uint32_t rank = 0; rank < tree.rank_count; ++rank) {
    if (std::binary_search(leaf_ranks.begin(), leaf_ranks.end(), rank)) continue;
    number[rank] = static_cast<int32_t>(rest.parents.size());
    rest.parents.push_back(tree.parents[rank]);
    rest.vertices.push_back(tree.vertices[rank]);
  }
  for (int32_t& parent : rest.parents) {
    if (parent >= 0) parent = number[static_cast<size_t>(parent)];
  }
  rest.rank_count = static_cast<uint32_t>(rest.parents.size());
  return rest;
}

absl::Status CheckTypeI(const TreePlan& plan, const TreeRequest& request) {
  const AggregationTree tree = WithoutLeaves(plan.tree, request.leaf_ranks);
  if (tree.rank_count == 1) return absl::OkStatus();
  if (tree.builder == TreeBuilder::kKary) return CheckKary(tree);
  if (tree.builder == TreeBuilder::kKnomial) return CheckKnomial(tree);
  return absl::OkStatus();
}

// Over tables, every switch of the physical tree sends to the root through the port that its table
// says.
absl::Status CheckFollowsRoutes(const Snapshot& snapshot, const PhysicalTree& physical) {
  if (snapshot.routes->kind() == RouteKind::kShortestPath) return absl::OkStatus();
  for (size_t v = 1; v < physical.vertices.size(); ++v) {
    if (!snapshot.fabric->IsSwitch(physical.vertices[v])) continue;
    const SwitchIndex s = snapshot.fabric->AsSwitch(physical.vertices[v]);
    if (physical.up[v] != snapshot.routes->NextChannel(s, physical.root)) {
      return absl::InternalError(absl::StrCat("physical vertex ", v, " leaves the route"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTypeII(const Snapshot& snapshot, const TreePlan& plan, const TreeRequest& request,
                         absl::Span<const SwitchCapacity> capacity) {
  const AggregationTree& tree = plan.tree;
  for (uint32_t node = tree.rank_count; node < tree.node_count(); ++node) {
    if (capacity[tree.vertices[node].value()].entries_free == 0) {
      return absl::InternalError(absl::StrCat("node ", node, " serves without a free entry"));
    }
    if (std::count(tree.parents.begin(), tree.parents.end(), static_cast<int32_t>(node)) < 2) {
      return absl::InternalError(absl::StrCat("node ", node, " takes an entry for one child"));
    }
  }
  if (!plan.physical) return absl::InternalError("no physical tree");
  if (tree.rank_count == 1) return absl::OkStatus();
  RETURN_IF_ERROR(CheckPhysicalTree(*snapshot.fabric, *plan.physical, request.members));
  RETURN_IF_ERROR(CheckFollowsRoutes(snapshot, *plan.physical));
  return CheckAncestry(*snapshot.fabric, tree, *plan.physical);
}

absl::Status CheckFigures(const Snapshot& snapshot, const CostProfile& profile,
                          const TreePlan& plan, const TreeRequest& request) {
  ASSIGN_OR_RETURN(const std::vector<EdgeCost> edges, EdgeCosts(snapshot, profile, plan.tree));
  Prediction predicted = EvaluateMix(profile, plan.tree, edges, request);
  RETURN_IF_ERROR(AddContention(snapshot, profile, plan.tree, edges, request, predicted));
  const double total = predicted.total_us;
  if (std::abs(total - plan.predicted.total_us) > 1e-9 * (1 + total)) {
    return absl::InternalError(
        absl::StrCat("the plan says ", plan.predicted.total_us, " us, its tree takes ", total));
  }
  if (plan.height != Height(plan.tree) || plan.radius != Radius(plan.tree, edges)) {
    return absl::InternalError("height or radius is not the tree's");
  }
  return plan.reason.empty() ? absl::InternalError("no reason") : absl::OkStatus();
}

}  // namespace

absl::Status CheckPlan(const Snapshot& snapshot, const CostProfile& profile, const TreePlan& plan,
                       const TreeRequest& request, absl::Span<const SwitchCapacity> capacity) {
  if (request.type && plan.tree.type != *request.type) {
    return absl::InternalError("another type than asked for");
  }
  RETURN_IF_ERROR(CheckTree(*snapshot.fabric, plan.tree, request.members));
  std::vector<uint32_t> limits;
  for (const SwitchCapacity& c : capacity) limits.push_back(c.degree_limit);
  RETURN_IF_ERROR(CheckDegrees(plan.tree, request.nic_degree.value_or(profile.nic_degree), limits));
  RETURN_IF_ERROR(plan.tree.type == TreeType::kTypeI
                      ? CheckTypeI(plan, request)
                      : CheckTypeII(snapshot, plan, request, capacity));
  return CheckFigures(snapshot, profile, plan, request);
}

}  // namespace coppice
