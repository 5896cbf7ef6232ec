// The verifier of forests: whether one is what it claims to be, by the definitions alone. Shares no
// code with what builds them.
#ifndef COPPICE_TESTS_SUPPORT_FOREST_CHECK_H_
#define COPPICE_TESTS_SUPPORT_FOREST_CHECK_H_

#include "absl/status/status.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/forest/forest.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

// INTERNAL says what is wrong: a tree that is no type I tree over the members (CheckTree); a rank
// with more children than its NIC serves; a share
// that is not above 0, or shares that do not add up to 1; a busiest link that is busy for another
// time than claimed, or not the busiest.
absl::Status CheckForest(const Snapshot& snapshot, const CostProfile& profile,
                         const TreeRequest& request, const ForestPlan& plan);

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_FOREST_CHECK_H_
