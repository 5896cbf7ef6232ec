// A graph cut into parts by METIS, which only this file knows; search/partition/partition.h brings
// the parts to exact sizes.
//
// METIS draws from the process's rand(): calls take turns under one lock and each sets the seed
// first, so that equal arguments give equal parts whatever other threads do, as long as nobody else
// in the process calls rand() meanwhile.
//
// METIS cannot be stopped. Before a call, what it will take is told from the size of the graph and
// from how long this run took to copy it for METIS; if that is more than the time that is left, it
// is not called:
//
//     edges --copied in c seconds--> c * kCutsPerCopy * log2(parts) > remaining()?   CANCELLED
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_GROUPS_METIS_PARTITION_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_GROUPS_METIS_PARTITION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/pattern.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// Undirected: every edge is in the rows of both ends, with the same weight >= 0. No loops.
struct WeightedGraph {
  std::vector<size_t> begin;  // [vertices + 1] into neighbours
  std::vector<uint32_t> neighbours;
  std::vector<double> weights;         // [edge in a row]
  std::vector<uint32_t> vertex_sizes;  // 0 = counts for nothing

  uint32_t vertex_count() const { return static_cast<uint32_t>(begin.size() - 1); }
};

// Ranks of size 1, weights of both directions together.
WeightedGraph GraphOf(const Pattern& pattern);

struct GraphPart {
  std::vector<uint32_t> vertices;  // of the whole graph, ascending
  WeightedGraph graph;             // among them, numbered in this order
};

// [part] what parts[vertex] says is of it, for `count` parts. O(edges).
std::vector<GraphPart> SplitGraph(const WeightedGraph& graph, absl::Span<const uint32_t> parts,
                                  uint32_t count);

enum class PartitionMethod : uint8_t { kRecursiveBisection, kWays };

struct PartitionOptions {
  uint64_t seed = 1;
  PartitionMethod method = PartitionMethod::kWays;
  double imbalance = 0.001;  // of what METIS returns, before the correction
};

// [vertex] its part: light cut, sizes near `part_sizes`, whose sum is that of the vertices. METIS's
// answer as it is: parts may be empty. Weights are scaled to METIS's integers, at least 1 for an
// edge. RESOURCE_EXHAUSTED, naming the limit: more vertices, edges or parts than METIS's 32-bit
// numbers hold. CANCELLED: `control` is stopped, also while others have METIS's lock, or has not
// the time that it is going to take.
absl::StatusOr<std::vector<uint32_t>> Partition(const WeightedGraph& graph,
                                                absl::Span<const uint32_t> part_sizes,
                                                const PartitionOptions& options,
                                                const SearchControl& control = SearchControl());

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_GROUPS_METIS_PARTITION_H_
