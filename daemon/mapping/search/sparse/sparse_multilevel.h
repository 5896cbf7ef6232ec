// Refinement on all levels of the pattern: pieces of it that sit together are joined, level after
// level, moved as wholes where that pays, and taken apart again.
//
//     ranks        o-o-o-o-o-o        o-o-o-o-o-o
//                   \| \| \|    ---->  |/ |/ |/      at every level: sparse_moves.h
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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_MULTILEVEL_H_
