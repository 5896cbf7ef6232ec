// From a batch's trees over switches to trees over ranks, for those who store, show or check them.
#ifndef COPPICE_DAEMON_TREE_BATCH_TREES_H_
#define COPPICE_DAEMON_TREE_BATCH_TREES_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

struct RankTree {
  AggregationTree tree;
  PhysicalTree physical;
};

// `batch` is what PlanBatch gave for these members. Errors as FindMemberPlaces. O(P log P).
absl::StatusOr<RankTree> HangBatchTree(const Snapshot& snapshot,
                                       absl::Span<const SwitchCapacity> capacity, Members members,
                                       const BatchTree& batch);

// The same with its edges' costs and predicted times for the request's operation and sizes, as
// PlanTree would return it.
absl::StatusOr<TreePlan> PlanOfBatchTree(const Snapshot& snapshot, const CostProfile& profile,
                                         absl::Span<const SwitchCapacity> capacity,
                                         const TreeRequest& request, const BatchTree& batch);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_TREES_H_
