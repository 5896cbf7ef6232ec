// Refinement on all levels of the pattern: pieces of it that sit together are joined, level after
// level, moved as wholes where that pays, and taken apart again.
//
//     ranks        o-o-o-o-o-o        o-o-o-o-o-o
//                   \| \| \|    ---->  |/ |/ |/      at every level: sparse_multilevel.h
//     pairs         O---O---O          O---O---O
//                    \  |      moves    \  |
//     clusters        @-@      ---->     @-@
//
// G. Karypis and V. Kumar, 1998 (multilevel); C. Walshaw, 2004 (iterated, keeping the seating);
// P. Sanders and C. Schulz, "Distributed evolutionary graph partitioning", ALENEX 2012 (two
// seatings combined: only what sits together in both is joined). The objective is the mapping's at
// every level, as in KaHIP's and SharedMap's integrated mapping.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_MULTILEVEL_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_MULTILEVEL_H_

#include <cstdint>

#include "daemon/mapping/search/sparse/sparse_cost.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// One cycle down and up. `other`, if not null, is another seating of the same ranks. Never makes
// `seats` worse; returns what it gained. O(edges) a level, about.
double RefineOnAllLevels(const SparseProblem& problem, uint64_t seed, const Seats* other,
                         const SearchControl& control, Seats& seats);

// Moves of vertices of any size between places with room, Fiduccia and Mattheyses's way, with the
// mapping's own cost as gain.
//
//     seed ---> its best move ---> its neighbours' best moves ---> ...     hill climbing from one
//       cost      \___    ___/                                             vertex at the border;
//                     \__/  <-- best so far: everything after it is undone
//
// C. Fiduccia and R. Mattheyses, DAC 1982; local searches from single vertices: V. Osipov and
// P. Sanders, "n-level graph partitioning", ESA 2010, and KaHIP's multi-try FM.

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

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_MULTILEVEL_H_
