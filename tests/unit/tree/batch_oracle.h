// The best plan of a tiny batch by brute force over every root, physical tree and serving set of
// every communicator. Shares nothing with what it judges but the fabric.
#ifndef COPPICE_TESTS_UNIT_TREE_BATCH_ORACLE_H_
#define COPPICE_TESTS_UNIT_TREE_BATCH_ORACLE_H_

#include <cstdint>
#include <tuple>

#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/tree/batch/batch.h"

namespace coppice {

using BatchOutcome = std::tuple<uint32_t, uint32_t, uint64_t>;  // refused, farther, entries

// The lexicographically least outcome over shortest paths; with RootReach::kAny farther is 0. At
// most 10 switches, a few communicators.
BatchOutcome BestOutcome(const Fabric& fabric, absl::Span<const SwitchCapacity> capacity,
                         absl::Span<const BatchCommunicator> batch, RootReach reach);

// The least that the most loaded channel can carry over shortest paths to any roots if everybody
// gets a tree and all together take `most_entries` at most; UINT32_MAX if they cannot. At most 6
// switches, 3 communicators.
uint32_t BestMostPackets(const Fabric& fabric, absl::Span<const SwitchCapacity> capacity,
                         absl::Span<const BatchCommunicator> batch, uint64_t most_entries);

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_TREE_BATCH_ORACLE_H_
