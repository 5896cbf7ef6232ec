// One cut of a graph into parts that none exceeds its capacity: METIS, refinement, and the
// capacities exactly.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_PARTITION_PARTITION_CUT_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_PARTITION_PARTITION_CUT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/search/groups/metis_partition.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// Moves vertices, those first that cost the least cut for their size, until no part is larger than
// its capacity; where vertices are too large for the room that is left, as near as it gets. Once
// stopped, it moves whoever comes first. O(edges + moved * degree * log(parts)).
void FitParts(const WeightedGraph& graph, absl::Span<const uint64_t> capacities,
              std::vector<uint32_t>& parts, const SearchControl& control);

// [vertex] part: in the order of their numbers, each in the first part that is not full; what is
// left over in the last. Where there is no time for a cut, or nothing to cut along.
std::vector<uint32_t> PartsInOrder(const WeightedGraph& graph,
                                   absl::Span<const uint64_t> capacities);

struct CutOptions {
  uint64_t seed = 1;
  double imbalance = 0.001;                          // that METIS may use
  uint32_t tries = 1, cycles = 0, combinations = 0;  // see MultisectionOptions
  uint32_t samples = 1;  // partitions of which the first try is the best
};

// [vertex] part, about `targets` large and none larger than `most`; vertices are of size 1.
// Errors as Partition, CANCELLED only for the first cut. Once stopped, it refines no more.
absl::StatusOr<std::vector<uint32_t>> CutGraph(const WeightedGraph& graph,
                                               absl::Span<const uint32_t> targets,
                                               absl::Span<const uint64_t> most,
                                               const CutOptions& options,
                                               const SearchControl& control);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_PARTITION_PARTITION_CUT_H_
