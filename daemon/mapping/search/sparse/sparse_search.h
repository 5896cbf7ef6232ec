// Local search of the sparse quadratic assignment problem by swaps and moves near partners.
//
//     u talks to v.  Try u on the places near v's, in exchange for whoever sits there:
//
//       [ u ]  . . . . . . [ v | q1 | q2 | q3 ]      a node, then a switch, then a pod
//         \___________________/ swap with v's neighbours, or take a free slot
//
// After M. Brandfass, T. Alrutz and T. Gerhold, "Rank reordering for MPI communication
// optimization", 2013 (swaps); C. Schulz and J. L. Traeff, SEA 2017 (sparse patterns, gains in
// O(deg u + deg w)); the neighbourhood is that of places near a partner's.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_SEARCH_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_SEARCH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

struct SwapOptions {
  uint64_t seed = 1;
  uint32_t near = 16;      // places tried near each partner's
  uint32_t partners = 24;  // of one rank; where it has more, the heaviest
};

// Improves `seats`, an admissible seating, until no such swap or move does, or it is stopped; never
// makes it worse. Returns what it gained. O(degree * near * degree) for each rank that is looked
// at; ranks are looked at again when a partner has moved.
double SwapUntilLocalOptimum(const SparseProblem& problem, const SwapOptions& options,
                             const SearchControl& control, Seats& seats);

// Annealing at low temperature from a good seating: it repairs what a local search cannot, without
// losing what the start knows.
//
//     mean |delta| of proposals = m      T0 = hot * m, cooled geometrically to T0 * kColdest
//
// Deltas of 0, and those far above the median, are no part of the mean.
//
// Proposals are those of the local search: a random rank onto a place near a random partner's, in
// exchange for a random occupant. Metropolis's rule with a table of logarithms.
struct SparseAnnealOptions {
  uint64_t seed = 1;
  double hot = 0.03;        // T0 over the mean absolute delta
  double proposals = 1000;  // for each rank
};

// One cooling. Leaves the best seating seen at the end of a stage (of 64) in `seats`, and returns
// what it gained: 0 and the start if that was best. O(proposals * degree).
double Anneal(const SparseProblem& problem, const SparseAnnealOptions& options,
              const SearchControl& control, Seats& seats);

// Refinement on all levels of the pattern: pieces of it that sit together are joined, level after
// level, moved as wholes where that pays, and taken apart again.
//
//     ranks        o-o-o-o-o-o        o-o-o-o-o-o
//                   \| \| \|    ---->  |/ |/ |/
//     pairs         O---O---O          O---O---O
//                    \  |      moves    \  |
//     clusters        @-@      ---->     @-@
//
// G. Karypis and V. Kumar, 1998 (multilevel); C. Walshaw, 2004 (iterated, keeping the seating);
// P. Sanders and C. Schulz, "Distributed evolutionary graph partitioning", ALENEX 2012 (two
// seatings combined: only what sits together in both is joined). The objective is the mapping's at
// every level, as in KaHIP's and SharedMap's integrated mapping.

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

// Improves `seats` of `graph`, which is the problem's or a coarser one, keeping each place's
// vertices within its capacity; never makes it worse. Returns what it gained. A round is
// O(edges of the border * places next to a vertex).
double MoveToBetterPlaces(const SparseProblem& problem, const SparseGraph& graph, uint64_t seed,
                          const SearchControl& control, Seats& seats);

// Whole parts of the pattern exchanged between places: a multisection knows which ranks belong
// together, but where distances are no nested groups (a torus, a dragonfly) it matters, too, which
// of two like groups each half goes to.
//
//      A | B     cut first      the half of A that talks to B       a1 | a0   b0 | b1
//     ---+---                   must end up at B's side:            the halves turned round
//
// The parts are the vertices of a small one-to-one problem (Wang 2015, 4.4: aggregated pair
// exchange), which swaps and annealing solve in milliseconds.
//
// Exchanges what sits on places of one capacity; never makes `seats` worse. Nothing to do, and
// nothing done, where places differ in their capacities or groups say all that distances say.
void ArrangeParts(const SparseProblem& problem, uint64_t seed, const SearchControl& control,
                  Seats& seats);

// Matches every vertex, in random order, with the free neighbour of the same `key` whose link is
// the heaviest for the sizes of both: weight^2 / (size * size) (M. Holtgrewe, P. Sanders and
// C. Schulz, "Engineering a scalable high quality graph partitioner", 2010: expansion*2). No pair
// is larger than `largest`. Returns [vertex] the number of its coarse vertex. O(edges).
std::vector<uint32_t> MatchNeighbours(const SparseGraph& graph, absl::Span<const uint64_t> keys,
                                      uint32_t largest, Xoshiro& random);

// The graph of the coarse vertices: links between two are added up, links within one are dropped,
// or kept as what it sends to itself where `keep_self`. O(edges).
SparseGraph Contract(const SparseGraph& graph, const std::vector<uint32_t>& coarse_of,
                     bool keep_self);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_SEARCH_H_
