// What no seating costs less than: a search that reaches it can stop.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_COST_BOUND_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_COST_BOUND_H_

#include "daemon/mapping/search/sparse/sparse_problem.h"

namespace coppice {

// The row minima of P. C. Gilmore, "Optimal and suboptimal algorithms for the quadratic assignment
// problem", 1962, without the assignment of rows that follows there:
//
//     rank u:   9 7 2         the partners of u sit in other slots, at best the heaviest in the
//     place p:  2 2 4 4 4     nearest:  9*2 + 7*2 + 2*4;  the least over all places p, half of it
//                             for u and half for its partners, summed over u
//
// Reached by grids on grids, rings on rings; far below the optimum of most others. 0 if there are
// so many ranks and places that it is not worth its time. O(places^2 log + pairs * places).
double LeastCost(const SparseProblem& problem);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_COST_BOUND_H_
