// "robust-tabu": robust taboo search for the quadratic assignment problem (Taillard 1991, Parallel
// Computing 17), for dense problems without structure, such as tai100a, where annealed solutions
// have nothing in common that a memetic search could keep.
//
//     costs of all swaps      0
//     (lower triangle)        .  0        1. the cheapest swap that is not taboo, even if it costs
//                             .  -7 0     2. ranks i, j may not return to the slots they left for
//                             .  .  .  0     a while of random length
//                                         3. update the triangle in O(1) each
//
// After a swap of r and s, for all i, j that are neither (section 2, eq. 2; symmetric problems):
//     cost(i,j) += 2 * (u[i] - u[j]) * (v[i] - v[j])       u, v: DenseState::Differences
// and O(n) for each pair with r or s: O(n^2) for a step in all. A swap of i and j is taboo while
// both are barred from the slots they would take; it is allowed all the same if it leads below the
// best found, or if neither has been there for very long (aspiration), which makes it spread out.
//
// Departures: the time on the list is 8 n x^3 steps with x even in 0..1, as in Taillard's later
// program, not 0.9 n to 1.1 n; what has not been for long is looked for in one rank a step, in
// turn, not in all; after n^2 steps without improvement a search goes on from the best it has found
// after a kick of random swaps (iterated tabu search, Misevicius 2012): without, it stays 0.3 %
// dearer on tai60a and tai100a; several searches run beside each other, the first from the start,
// the others from random orders. Memory: 12 n^2 bytes for each thread beside the matrices.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_ROBUST_TABU_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_ROBUST_TABU_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// Minimises the QAP cost; never returns worse than the start by it.
const MappingAlgorithm& RobustTabuAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_ROBUST_TABU_H_
