// What every algorithm of the table is tried on: kinds of small problems, each drawn anew by a
// seed, and a few large ones; and by what each algorithm wants to be judged.
#ifndef COPPICE_TESTS_UNIT_MAPPING_ALGORITHM_CASES_H_
#define COPPICE_TESTS_UNIT_MAPPING_ALGORITHM_CASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_problem.h"
#include "tests/support/naive_measures.h"

namespace coppice {

struct ProblemKind {
  const char* name;
  MappingProblem (*make)(uint64_t seed);
};

// At most 8 ranks: fat tree, torus, cube, dragonfly, hierarchy, asymmetric matrix; one or two slots
// a place, as many ranks as slots or fewer, with each objective that the kind has.
const std::vector<ProblemKind>& SmallKinds();

// 256 to 1,024 ranks: several ranks a host of a fat tree, a torus, a hierarchy.
const std::vector<ProblemKind>& LargeKinds();

// Any admissible mapping, by the seed.
Mapping RandomMapping(const MappingProblem& problem, uint64_t seed);

// What `algorithm` wants to lessen (its `source` says so): the QAP cost, or the problem's score.
bool MinimisesQapCost(const MappingAlgorithm& algorithm);
double Judged(const MappingAlgorithm& algorithm, const MappingProblem& problem,
              NaiveEvaluator& evaluator, const Mapping& mapping);
// Of all mappings. At most 8 ranks.
double LeastJudged(const MappingAlgorithm& algorithm, const MappingProblem& problem,
                   NaiveEvaluator& evaluator);

// Options under which no algorithm takes more than a moment for a large problem.
AlgorithmOptions QuickOptions(const MappingAlgorithm& algorithm, uint64_t seed);

// Populations of at least one individual for each slot are for the full tier where slots are many.
bool IsQuickFor(const MappingAlgorithm& algorithm, const MappingProblem& problem);

// Its name with _ for -, as tests' names must be.
std::string TestName(const MappingAlgorithm& algorithm);

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_MAPPING_ALGORITHM_CASES_H_
