// Where a batch's communicators are, as far as planning on switches can tell them apart: equally
// many ranks on the same leaf switches are one shape. Of the 256 columns of a grid on leaf switches
// of 16 ports, 16 each share one, and distances and roots are found once for them.
#ifndef COPPICE_DAEMON_TREE_BATCH_SHAPES_H_
#define COPPICE_DAEMON_TREE_BATCH_SHAPES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/batch.h"

namespace coppice {

struct BatchShape {
  std::vector<SwitchIndex> leaves;  // ascending
  std::vector<uint32_t> ranks_on;   // [position in leaves] at least 1
  uint32_t ranks = 0;
  std::vector<SwitchIndex> nearest;  // roots whose farthest leaf is least far, ascending
  uint32_t nearest_hops = 0;         // from them to that leaf
  uint32_t fewest = 0;               // no tree takes fewer entries: the fewest switches whose
                                     // largest K - 1 sum to ranks - 1
};

struct BatchShapes {
  static constexpr uint32_t kNone = UINT32_MAX;

  std::vector<BatchShape> shapes;
  std::vector<uint32_t> shape_of;    // [communicator] kNone: it has one rank, or cannot be planned
  std::vector<std::string> trouble;  // [communicator] why it cannot be planned; empty: it can
};

// INVALID_ARGUMENT as PlanBatch. O(members + shapes * (classes of leaf switches * classes)).
absl::StatusOr<BatchShapes> FindBatchShapes(const Snapshot& snapshot,
                                            absl::Span<const SwitchCapacity> capacity,
                                            absl::Span<const BatchCommunicator> communicators);

// What the most loaded link carries at least if all these communicators get trees with `entries` at
// most together, but no fewer each than BatchShape::fewest. Of their leaf switches only so many can
// serve; from one of the others all ranks of a communicator leave over one link. O(n log n) for the
// leaf switches of all.
uint32_t LeastMostPackets(const BatchShapes& shapes, absl::Span<const uint32_t> communicators,
                          uint64_t entries);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_SHAPES_H_
