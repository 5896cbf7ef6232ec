// Whole parts of the pattern exchanged between places: a multisection knows which ranks belong
// together, but where distances are no nested groups (a torus, a dragonfly) it matters, too, which
// of two like groups each half goes to.
//
//      A | B     cut first      the half of A that talks to B       a1 | a0   b0 | b1
//     ---+---                   must end up at B's side:            the halves turned round
//
// The parts are the vertices of a small one-to-one problem (Wang 2015, 4.4: aggregated pair
// exchange), which swaps and annealing solve in milliseconds.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_ARRANGE_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_ARRANGE_H_

#include <cstdint>

#include "daemon/mapping/search/sparse/sparse_cost.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// Exchanges what sits on places of one capacity; never makes `seats` worse. Nothing to do, and
// nothing done, where places differ in their capacities or groups say all that distances say.
void ArrangeParts(const SparseProblem& problem, uint64_t seed, const SearchControl& control,
                  Seats& seats);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_ARRANGE_H_
