// Cutting a graph along a tree of groups, so that every place gets no more than it takes: METIS at
// every group, then the capacities exactly.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_PARTITION_PARTITION_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_PARTITION_PARTITION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/search/groups/groups.h"
#include "daemon/mapping/search/groups/metis_partition.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

struct MultisectionOptions {
  uint64_t seed = 1;
  // Fill as few groups as hold the ranks, the first of them; else spread over all.
  bool pack = true;
  // For each cut: partitions by METIS, each refined on all levels this often, and then combinations
  // of two of them (sparse_multilevel.h), the best of which is taken.
  uint32_t tries = 1, cycles = 0, combinations = 0;
  // Partitions of the root by METIS alone, of which the best is the first try.
  uint32_t root_samples = 1;
};

// [vertex] a place; vertices are of size 1, as many as there are slots at most. Group after group
// from the root, the vertices of a group are cut into as many parts as it has children. A group
// that is to be filled by n of its slots gives child i at most (1 + e) times its share of n, where
// e is the room that is left, evenly over the levels (Schulz and Woydt, "Shared-memory hierarchical
// process mapping", 2025, section 4):
//     e = (free ratio) ^ (1 / levels left) - 1
// What there is no time for is cut in the order of its numbers. O(edges * levels), about.
absl::StatusOr<std::vector<uint32_t>> Multisect(const WeightedGraph& graph,
                                                const PlaceGroups& groups,
                                                const MultisectionOptions& options,
                                                const SearchControl& control);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_PARTITION_PARTITION_H_
