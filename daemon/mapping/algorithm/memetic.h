// "memetic": a population of annealed solutions that learn from each other, for dense quadratic
// assignment problems whose cost has several scales: groups within groups. Ours; the parts are
// known: annealing (Connolly 1990), crossover that keeps what both parents share and searches the
// rest (Drezner 2003; Merz, Freisleben 2000), islands in a ring (Baranov 2022).
//
//     random --slow cooling--> middle --slow--> end --descent--> individual
//                 |                                                  |
//                 too dear here: another basin, away with it         v
//                                                     population of an island --best--> next island
//     parents a, b:   . . X . X X . X .   X: ranks that sit elsewhere in b, and a tenth of the
//     others child:   a, with the X free; reheated to 1.5 times the middle temperature, cooled; it
//     takes
//              the place of the worse parent if it is better than that and like no other
//
// Why: on Taillard's "e" instances a solution is decided when it freezes, between the start and the
// middle temperature, group by group; no single run gets all groups right, and later swaps cannot
// mend it since a group moves as a whole. Two good runs rarely have the same groups wrong: what
// they share is right, and the rest, a small problem, can be frozen again and again.
//
// An epoch ends when no island has found anything better for three times its population. The next
// begins anew; when it ends, the best of the epochs before join it. Islands may be spread over
// processes (search_team.h): as many in all give the same result.
//
// Cost: an individual is 600 sweeps; a sweep O(n^3) at the start, a tenth and less below the middle
// temperature (search/dense_anneal.h). Memory: n^2 for each island and for each thread.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_MEMETIC_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_MEMETIC_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// Minimises the QAP cost; never returns worse than the start by it.
const MappingAlgorithm& MemeticAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_MEMETIC_H_
