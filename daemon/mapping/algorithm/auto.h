// "auto": a portfolio that is stopped whenever the caller likes and hands back the best so far.
//
//     present order --+                         +--> proved optimal (up to 8 ranks)
//     given numbering +--> incumbent --rounds --+
//     multisection ---+       ^    \ tasks of a round, on as many threads as there are:
//                             |     anneal it, anneal another start, combine, congestion, tabu, ...
//                             +---- the best of the tasks, in their order, when all are done
//
// A round begins when the one before is complete, and its tasks depend on nothing but round, seed
// and incumbent: so equal seeds give equal results for any number of threads, unless the clock
// ends a round early. Never worse than the present order by the problem's objective.
//
//   few ranks on each place   rounds of annealing, each with twice the proposals (sparse_anneal.h)
//   many ranks on each place  multisections with more and more care, and combinations of the best
//   congestion                "congestion" on the real routes, from the best by links
//   small and dense           "robust-tabu" and "memetic"
//
// Algorithms of other files are found by name in the table; one that is missing or declines is
// passed over.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// The note says what ran, what won and why it ended.
const MappingAlgorithm& AutoAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_H_
