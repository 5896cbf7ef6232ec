// What others make of the same problem: Debian's Scotch as a program, and METIS.
#ifndef COPPICE_TESTS_BENCHMARK_MAPPING_RIVALS_H_
#define COPPICE_TESTS_BENCHMARK_MAPPING_RIVALS_H_

#include <optional>
#include <string>

#include "daemon/mapping/mapping_problem.h"

namespace coppice {

struct RivalAnswer {
  Mapping mapping;
  double seconds = 0;     // of processor time, the reading of its files included
  uint32_t overfull = 0;  // ranks beyond capacities
};

// scotch_gmap -cq -b`imbalance` over `tree`, a target of its own form with the places in order
// ("tleaf ..."); if that is empty, over a decomposed architecture (deco 0) of the places: domains
// from the tree of groups, halved, and the problem's distances, the mean of both directions.
// nullopt: no such program, or it failed.
std::optional<RivalAnswer> RunScotch(const MappingProblem& problem, const std::string& tree,
                                     double imbalance);

// METIS k-way into as many parts as places, then parts swapped on places until no swap of two
// helps. nullopt with one rank a place: there is nothing to cut.
std::optional<RivalAnswer> RunMetis(const MappingProblem& problem);

// Of this process, all threads.
double ProcessorSeconds();

}  // namespace coppice

#endif  // COPPICE_TESTS_BENCHMARK_MAPPING_RIVALS_H_
