// Whether a plan is what was asked for: the verifier of trees (tree_check.h) and the rules that
// only the request and the switches' capacities know, all apart from the builders.
#ifndef COPPICE_TESTS_UNIT_TREE_PLAN_CHECK_H_
#define COPPICE_TESTS_UNIT_TREE_PLAN_CHECK_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/planner.h"

namespace coppice {

// INTERNAL names the rule that the plan breaks: definitions, degree limits, free entries, routes of
// the physical tree, figures that do not follow from the tree.
absl::Status CheckPlan(const Snapshot& snapshot, const CostProfile& profile, const TreePlan& plan,
                       const TreeRequest& request, absl::Span<const SwitchCapacity> capacity);

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_TREE_PLAN_CHECK_H_
