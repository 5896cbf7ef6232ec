// Moves of vertices of any size between places with room, Fiduccia and Mattheyses's way, with the
// mapping's own cost as gain.
//
//     seed ---> its best move ---> its neighbours' best moves ---> ...     hill climbing from one
//       cost      \___    ___/                                             vertex at the border;
//                     \__/  <-- best so far: everything after it is undone
//
// C. Fiduccia and R. Mattheyses, DAC 1982; local searches from single vertices: V. Osipov and
// P. Sanders, "n-level graph partitioning", ESA 2010, and KaHIP's multi-try FM.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_MOVES_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_MOVES_H_

#include <cstdint>

#include "daemon/mapping/search/sparse/sparse_cost.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

struct MoveOptions {
  uint64_t seed = 1;
  uint32_t rounds = 2;      // over the border at most; fewer where one gains next to nothing
  uint32_t fruitless = 60;  // moves after the best of a try
};

// Improves `seats` of `graph`, which is the problem's or a coarser one, keeping each place's
// vertices within its capacity; never makes it worse. Returns what it gained. A round is
// O(edges of the border * places next to a vertex).
double MoveToBetterPlaces(const SparseProblem& problem, const SparseGraph& graph,
                          const MoveOptions& options, const SearchControl& control, Seats& seats);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_MOVES_H_
