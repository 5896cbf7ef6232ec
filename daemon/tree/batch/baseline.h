// What a batch is compared with: the communicators planned one after another in the given order,
// each as if it were the last (Chen 2024, 4.1 and 6.2.2), and bounds that nothing can beat.
#ifndef COPPICE_DAEMON_TREE_BATCH_BASELINE_H_
#define COPPICE_DAEMON_TREE_BATCH_BASELINE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/state.h"

namespace coppice {

enum class BaselineMethod : uint8_t {
  kUnreduced,    // every switch of the physical tree serves; limits are not asked
  kMinimumCost,  // algorithm 5 on that physical tree, exact
};

// The paper's rules: candidates are the nearest switches, least loaded first (measured load and
// packets promised before), then most free entries, then lowest GUID; the physical tree goes over
// the least loaded channel; a candidate with a full switch anywhere in that tree is dropped. Errors
// and totals as PlanBatch; farther_roots is 0.
absl::StatusOr<BatchTotals> PlanOneByOne(const Snapshot& snapshot,
                                         absl::Span<const SwitchCapacity> capacity,
                                         absl::Span<const BatchCommunicator> communicators,
                                         BaselineMethod method, const BatchOptions& options = {});

// The same into an empty `state`, for those who go on from there.
void PlaceOneByOne(const Snapshot& snapshot, const BatchShapes& shapes, BaselineMethod method,
                   BatchState& state);

struct BatchBounds {
  // Sum over communicators of the fewest entries of a tree to any nearest root of the fabric with
  // all of entries_free there. Of a communicator for which no such tree works: the next figure's.
  uint64_t alone = 0;
  // Sum of BatchShape::fewest: no physical tree whatever takes fewer.
  uint64_t counting = 0;
  uint32_t no_nearest_root = 0;  // communicators for which no nearest root works even so
  // Least number of failures that entries allow: those with most entries left out until the
  // counting bounds of the rest fit into all free entries.
  uint32_t failures = 0;
  // LeastMostPackets of all with a twentieth more entries than `counting`.
  uint32_t most_packets = 0;
};

// Errors as PlanBatch.
absl::StatusOr<BatchBounds> BoundBatch(const Snapshot& snapshot,
                                       absl::Span<const SwitchCapacity> capacity,
                                       absl::Span<const BatchCommunicator> communicators);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_BASELINE_H_
