// "parallel-annealing": GraphHunter's parallel simulated annealing (Baranov 2022, section "Parallel
// algorithms"; ParallelSA).
//
//     worker 0   --n iterations--.      .--n iterations--.
//     worker 1   --n iterations--+ best +--n iterations--+ best ...
//     worker 2   --n iterations--'      '--n iterations--'
//                        all go on from the best that any has found
//
// Presets are the paper's: 50 candidates at each temperature; 1,000 iterations between exchanges,
// 100 where it found that better (n = 343: here for 257 to 512 slots); 50,000 iterations up to 256
// slots, 100,000 beyond; as many workers ("solvers") as slots up to 100, then 125; Cauchy cooling,
// which it found better than proportional. It ends after all iterations, at the final temperature,
// or when nothing has improved for a while.
//
// Departures: the paper gives neither temperatures nor the patience; ours are measured
// (search/dense_chain.h), and 100 iterations for each slot, at least one exchange and at most a
// fifth of all. An iteration is one temperature with all its candidates. Workers are logical: any
// number of threads runs them with one result, and so does any number of processes that have as
// many in all (search_team.h). Worker 0 begins with the start.
//
// Cost: iterations * candidates * workers swap costs of O(n), and a copy of n^2 for each worker and
// exchange.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_PARALLEL_ANNEALING_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_PARALLEL_ANNEALING_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// Minimises the QAP cost; never returns worse than the start by it.
const MappingAlgorithm& ParallelAnnealingAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_PARALLEL_ANNEALING_H_
