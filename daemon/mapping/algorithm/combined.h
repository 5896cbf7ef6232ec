// "combined": GraphHunter's annealing that makes the population of a genetic algorithm (Baranov
// 2022, section "Parallel algorithms", five steps; PGSA).
//
//     worker 0   anneal, anneal, ... n times --> population --> genetic generations --.
//     worker 1   anneal, anneal, ... n times --> population --> genetic generations --+--> best
//                (no exchange: populations differ)    `-- ring or master-slave --'
//
// Departures: as of parallel-annealing and parallel-genetic; how long each annealing takes is not
// said: here 1,000 iterations of 50 candidates, on the whole range of temperatures.
//
// Cost: workers * population * 50,000 swap costs of O(n), then as parallel-genetic.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_COMBINED_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_COMBINED_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// Minimises the QAP cost; never returns worse than the start by it.
const MappingAlgorithm& CombinedAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_COMBINED_H_
