// The words of a plan: why this type, with both figures; which switches were full.
#ifndef COPPICE_DAEMON_TREE_PLAN_REASON_H_
#define COPPICE_DAEMON_TREE_PLAN_REASON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/tree/planner.h"

namespace coppice {

// "3.40 us for type I (hierarchical, k = 32)", "2.31 us for type II (9 switches)"; `is_fewest`: "(9
// switches, the fewest)", where more switches could serve.
std::string Figure(const AggregationTree& tree, const Prediction& predicted,
                   bool is_fewest = false);

// Up to eight switches as `0002c9020040b0e0 "leaf3" (16 entries)`, then "and 3 more".
std::string NameSwitches(const Fabric& fabric, absl::Span<const FullSwitch> switches);

// "; 2 full switches made type II dearer: ..." or "".
std::string DearerBecause(const Fabric& fabric, absl::Span<const FullSwitch> switches);

// Type II was demanded and there is none: RESOURCE_EXHAUSTED that names the full switches, or
// FAILED_PRECONDITION if the members' routes are what is wrong.
absl::Status RefuseType2(const Fabric& fabric, std::string_view why_not, bool routes_are_wrong,
                         absl::Span<const FullSwitch> full_switches);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_PLAN_REASON_H_
