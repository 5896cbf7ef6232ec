// Small mapping problems, at random and by hand, and the best mapping of one found by trying all:
// what every algorithm is held against.
#ifndef COPPICE_TESTS_UNIT_MAPPING_MAPPING_ORACLE_H_
#define COPPICE_TESTS_UNIT_MAPPING_MAPPING_ORACLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/mapping_problem.h"

namespace coppice {

// Hosts 0.. of a model fabric ("fat-tree(leaves=2,...)"), `ranks_per_host` slots on each, hop
// distances. Aborts the test where the model is wrong.
MappingProblem ProblemOnModel(const std::string& model, uint32_t hosts, uint32_t ranks_per_host,
                              std::shared_ptr<const Pattern> pattern);

// One slot for each of `count` places, a matrix of distances.
MappingProblem ProblemOnMatrix(std::vector<double> distances,
                               std::shared_ptr<const Pattern> pattern);

// Each ordered pair of ranks exchanges 1..20 bytes with this probability.
std::shared_ptr<const Pattern> RandomPattern(uint32_t ranks, double density, uint64_t seed);

// A ring or a grid of ranks, `bytes` each way between neighbours.
std::shared_ptr<const Pattern> RingPattern(uint32_t ranks, double bytes);
std::shared_ptr<const Pattern> GridPattern(uint32_t rows, uint32_t columns, double bytes);

// All bytes times `unit`, a power of two.
std::shared_ptr<const Pattern> Scaled(const Pattern& pattern, double unit);

// Calls `visit` for every mapping that the capacities allow. At most 8 ranks.
void ForEachMapping(const MappingProblem& problem,
                    const std::function<void(const Mapping&)>& visit);

// The least of Score over all mappings, against the present order's measures.
double LeastScore(const MappingProblem& problem);

// Measure() and Score(), aborting the test on an error.
MappingMeasures MeasureOf(const MappingProblem& problem, const Mapping& mapping);
double ScoreOf(const MappingProblem& problem, const Mapping& mapping);

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_MAPPING_MAPPING_ORACLE_H_
