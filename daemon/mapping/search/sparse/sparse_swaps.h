// Seatings of a sparse problem improved rank by rank: by swaps and moves, and by annealing.
//
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
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_SWAPS_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_SWAPS_H_

#include <cstdint>

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
// Proposals are those of the local search: a random rank onto a place near a random partner's
// (sparse_problem.h), in exchange for a random occupant. Metropolis's rule with a table of
// logarithms.

struct SparseAnnealOptions {
  uint64_t seed = 1;
  double hot = 0.03;        // T0 over the mean absolute delta
  double proposals = 1000;  // for each rank
};

// One cooling. Leaves the best seating seen at the end of a stage (of 64) in `seats`, and returns
// what it gained: 0 and the start if that was best. O(proposals * degree).
double Anneal(const SparseProblem& problem, const SparseAnnealOptions& options,
              const SearchControl& control, Seats& seats);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_SWAPS_H_
