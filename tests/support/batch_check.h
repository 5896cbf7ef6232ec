// Verifies a planned batch apart from everything that plans it: trees are hung rank by rank and
// judged by tree_check.h, entries and packets are counted again from those trees alone.
#ifndef COPPICE_TESTS_SUPPORT_BATCH_CHECK_H_
#define COPPICE_TESTS_SUPPORT_BATCH_CHECK_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/batch.h"

namespace coppice {

// INTERNAL names the communicator and the rule that is broken: a tree that is none, is not over
// its physical tree, leaves the routes or exceeds a degree limit; a switch that serves for one
// child; more entries than were free; packets, totals or the most loaded link that do not follow
// from the trees; a refusal without a reason. `options` as planned with. O(edges of all trees *
// their length).
absl::Status CheckBatch(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity,
                        absl::Span<const BatchCommunicator> communicators,
                        const BatchOptions& options, const BatchPlan& plan);

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_BATCH_CHECK_H_
