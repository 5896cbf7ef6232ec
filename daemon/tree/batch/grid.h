// Communicators of process grids: MPI programs make one of every line of a grid along an axis.
//
//       3 x 4, last axis fastest        lines along axis 1: 0 1 2 3 | 4 5 6 7 | 8 9 10 11
//        0  1  2  3                     lines along axis 0: 0 4 8 | 1 5 9 | 2 6 10 | 3 7 11
//        4  5  6  7
//        8  9 10 11
//
// Knows ranks and members, no fabric.
#ifndef COPPICE_DAEMON_TREE_BATCH_GRID_H_
#define COPPICE_DAEMON_TREE_BATCH_GRID_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/tree/batch/batch.h"

namespace coppice {

enum class GridOrder : uint8_t {
  kLastAxisFastest,   // row-major, as MPI_Cart_create numbers ranks
  kFirstAxisFastest,  // column-major: a line along axis 0 is contiguous (Chen 2024, 6.2.2)
};

struct ProcessGrid {
  std::vector<uint32_t> sizes;  // [axis]
  GridOrder order = GridOrder::kLastAxisFastest;
  std::vector<uint32_t> axes;  // along which lines are made, distinct; empty = all
};

// "256x160" or "32x32x40". INVALID_ARGUMENT: anything else, a size of 0, more than 2^32 - 1
// processes.
absl::StatusOr<std::vector<uint32_t>> ParseGridSizes(absl::string_view text);

// Every line along every axis asked for, axis by axis, lines in the order of their first cell. Rank
// r of the grid is on members[r], or on members[rank_order[r]] if that is given; members beyond the
// grid are left out. INVALID_ARGUMENT: fewer members than cells, an axis out of range or named
// twice, or an order that is no permutation of the first cells. O(cells * axes).
absl::StatusOr<std::vector<BatchCommunicator>> GridLines(
    const ProcessGrid& grid, absl::Span<const EndpointIndex> members,
    absl::Span<const uint32_t> rank_order = {});

// `count` groups of `size` distinct members each, drawn with `seed`; equal arguments give equal
// groups everywhere. INVALID_ARGUMENT: fewer members than `size`, or a size of 0. O(members + count
// * size).
absl::StatusOr<std::vector<BatchCommunicator>> RandomGroups(
    uint32_t count, uint32_t size, uint64_t seed, absl::Span<const EndpointIndex> members);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_GRID_H_
