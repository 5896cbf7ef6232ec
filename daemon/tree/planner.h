// The planner: from a communicator and a snapshot to one tree with its reason. A function of
// values: no I/O, no clock, no hidden state, so coppice-plan on a file decides what the daemon
// decides.
#ifndef COPPICE_DAEMON_TREE_PLANNER_H_
#define COPPICE_DAEMON_TREE_PLANNER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

// `capacity` is [switch_count]. Errors: INVALID_ARGUMENT (no members, an endpoint out of range,
// width or degree out of range, a builder that does not fit the type); NOT_FOUND (the root switch
// is not in the fabric); FAILED_PRECONDITION (members in different components or without a route:
// names two of them); RESOURCE_EXHAUSTED (type II was demanded and no candidate root works: names
// the full switches; or no width respects the NICs' degree limit). With a policy also as
// CheckPolicy and ChooseByPolicy (trade.h).
absl::StatusOr<TreePlan> PlanTree(const Snapshot& snapshot, const CostProfile& profile,
                                  absl::Span<const SwitchCapacity> capacity,
                                  const TreeRequest& request);

// Fills `uses` and `busiest` of a plan that PlanTree made of the same. Walks the route of every
// edge both ways, which PlanTree itself mostly need not do. NOT_FOUND: an edge without a route.
absl::Status MeasureLinks(const Snapshot& snapshot, const CostProfile& profile,
                          const TreeRequest& request, LinkUseCounter& counter, TreePlan& plan);

// The words of a plan.

// "3.40 us for type I (hierarchical, k = 32)", "2.31 us for type II (9 switches)"; `is_fewest`: "(9
// switches, the fewest)", where more switches could serve.
std::string Figure(const AggregationTree& tree, const Prediction& predicted,
                   bool is_fewest = false);

// Up to eight switches as `0002c9020040b0e0 "leaf3" (16 entries)`, then "and 3 more".
std::string NameSwitches(const Fabric& fabric, absl::Span<const FullSwitch> switches);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_PLANNER_H_
