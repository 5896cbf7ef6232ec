// "parallel-genetic": GraphHunter's parallel genetic algorithm (Baranov 2022, section "Parallel
// algorithms"; GeneticAlg::CircleSolve and MasterSlaveSolve). An individual is the array of the
// slots of all ranks; each worker keeps a population of at least n of them.
//
//     ring                                    master-slave
//     worker 0 --best--> worker 1             worker 0 --best--> master --children--> worker 0
//        ^                  |                 worker 1 --best-->        --children--> worker 1
//     worker 3 <--best-- worker 2             (the paper finds it of little use)
//
// Departures: the paper takes its operators and rates from a library without naming them; ours are
// tournaments of two, uniform crossover, swaps, twins changed further (search/dense_genetic.h); no
// population is below 50. The start is one individual of worker 0. The master is process 0, and
// whoever gets a child counts its cost. Workers are logical: any number of threads runs them with
// one result, and so does any number of processes that have as many in all (search_team.h).
//
// Cost: generations * workers * n / 2 whole sums of O(n^2). Memory: workers * population * 4 n.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_PARALLEL_GENETIC_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_PARALLEL_GENETIC_H_

#include <cstdint>

#include "absl/status/status.h"
#include "daemon/mapping/algorithm.h"

namespace coppice {

// Minimises the QAP cost; never returns worse than the start by it.
const MappingAlgorithm& ParallelGeneticAlgorithm();

// RESOURCE_EXHAUSTED, naming both, if so many individuals of `size` slots take more than that.
inline constexpr uint64_t kMaxPopulationBytes = uint64_t{1} << 30;
absl::Status CheckPopulationMemory(uint32_t size, uint64_t individuals);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_PARALLEL_GENETIC_H_
