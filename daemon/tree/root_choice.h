// Which switches may be the root of a type II tree, and in what order to try them (Chen 2024, 4.1).
#ifndef COPPICE_DAEMON_TREE_ROOT_CHOICE_H_
#define COPPICE_DAEMON_TREE_ROOT_CHOICE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/planner.h"

namespace coppice {

// The switches whose greatest hop count to any of `leaf_switches` is least, by index (that is, by
// GUID). Empty if no switch reaches them all. `leaf_switches` are distinct and not empty.
//
// Works on classes of twin switches. Up to 64 classes of leaf switches: their cached distance rows,
// O(leaf classes * classes) bytes. More: all breadth-first searches at once, one bit per leaf
// class, stopped at the first level at which some switch has seen all: O(radius * channels * leaf
// classes / 64), never a search per leaf.
std::vector<SwitchIndex> NearestSwitches(const Snapshot& snapshot,
                                         absl::Span<const SwitchIndex> leaf_switches);

// [switch] hops to the farthest of `leaf_switches`, SwitchDistances::kUnreachable if one is out of
// reach. From cached distance rows: O(leaf classes * classes) bytes, for callers who ask for many
// communicators on the same leaf switches.
std::vector<uint8_t> FarthestHops(const Snapshot& snapshot,
                                  absl::Span<const SwitchIndex> leaf_switches);

// Puts the least loaded first (mean utilisation of the channels that leave and enter the switch),
// then the one with most free entries, then the lowest GUID. O(channels of the roots).
void SortRoots(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity,
               std::vector<SwitchIndex>& roots);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_ROOT_CHOICE_H_
