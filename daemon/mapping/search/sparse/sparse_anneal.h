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
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_ANNEAL_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_ANNEAL_H_

#include <cstdint>

#include "daemon/mapping/search/sparse/sparse_cost.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

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

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_ANNEAL_H_
