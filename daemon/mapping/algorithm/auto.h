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
//   few ranks on each place   rounds of annealing, each with twice the proposals (sparse_swaps.h)
//   many ranks on each place  multisections with more and more care, and combinations of the best
//   congestion                "congestion" on the real routes, which goes on through all rounds
//                             (auto_lines.h); what it comes to is then to be proven
//   dense                     beside annealing "memetic" and "robust-tabu"; most of the time goes
//                             to whichever improved last
//   up to 8 ranks             branch and bound, for a part of the time
//
// With a deadline it goes on until then; else it ends after some rounds. It ends before where
// nothing is left to gain: the optimum is proven, or a bound that no order is below is reached.
// Of orders alike in congestion, which on networks of full bisection are nearly all, it prefers as
// mapping_metrics.h does; once the congestion is proven it goes on for that alone, until a few
// rounds come to nothing more.
//
// A candidate that cannot be measured, as two ranks of it have no route, is none; only where the
// present order cannot be is there an error.
//
// Algorithms of other files are found by name in the table; one that is missing or declines is
// passed over. What cannot be stopped is only begun if there is time for it, as far as that can be
// told: METIS (search/groups/metis_partition.h), measures (auto_incumbent.h).
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_H_

#include <cstdint>

#include "daemon/mapping/algorithm.h"

namespace coppice {

// It searches as a dense problem, with matrices of all slots, no more slots than these.
inline constexpr uint32_t kPortfolioDenseSlots = 1024;

// The note says what ran, what won and why it ended.
const MappingAlgorithm& AutoAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_AUTO_H_
