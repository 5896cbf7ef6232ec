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

// Moves vertices, those first that cost the least cut for their size, until no part is larger than
// its capacity; where vertices are too large for the room that is left, as near as it gets; those
// of size 0 stay. Capacities that come to the sizes of all vertices are sizes that parts of
// vertices of size 1 then have exactly (Hoefler 2011, 3.2). Once stopped, it moves whoever comes
// first. O(edges + moved * degree * log(parts)).
void FitParts(const WeightedGraph& graph, absl::Span<const uint32_t> capacities,
              std::vector<uint32_t>& parts, const SearchControl& control);

// [vertex] part: in the order of their numbers, each in the first part that is not full; what is
// left over in the last. Where there is no time for a cut, or nothing to cut along.
std::vector<uint32_t> PartsInOrder(const WeightedGraph& graph,
                                   absl::Span<const uint32_t> capacities);

// A partition by METIS with these sizes exactly, as far as vertices allow; in order where there is
// no time for it. Errors as Partition, but for CANCELLED.
absl::StatusOr<std::vector<uint32_t>> CutIntoSizes(const WeightedGraph& graph,
                                                   absl::Span<const uint32_t> sizes,
                                                   const PartitionOptions& options,
                                                   const SearchControl& control);

struct MultisectionOptions {
  uint64_t seed = 1;
  // Fill as few groups as hold the ranks, the first of them; else spread over all.
  bool pack = true;
  // For each cut: partitions by METIS, each refined on all levels this often, and then combinations
  // of two of them (sparse_search.h), the best of which is taken.
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
