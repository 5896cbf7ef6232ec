#include "daemon/mapping/algorithm.h"

#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/mapping_metrics.h"

namespace coppice {
namespace {

const AlgorithmParameter* FindParameter(const MappingAlgorithm& algorithm, absl::string_view name) {
  for (const AlgorithmParameter& parameter : algorithm.parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

}  // namespace

absl::Span<const MappingAlgorithm* const> MappingAlgorithms() {
  static const auto* const algorithms = new std::vector<const MappingAlgorithm*>{
      &IdentityAlgorithm(),
      &BlockAlgorithm(),
      &RoundRobinAlgorithm(),
      &RandomAlgorithm(),
      &GreedyAlgorithm(),
      &RecursiveAlgorithm(),
      &RcmAlgorithm(),
      &MulticoreAlgorithm(),
      &ThresholdAcceptingAlgorithm(),
      &CpNscAlgorithm(),
      &HierarchicalClusteringAlgorithm(),
      &PairExchangeAlgorithm(),
      &CongestionAlgorithm(),
      &MultisectionAlgorithm(),
      &LocalSearchAlgorithm(),
      &AnnealingAlgorithm(),
      &ParallelAnnealingAlgorithm(),
      &ParallelGeneticAlgorithm(),
      &CombinedAlgorithm(),
      &RobustTabuAlgorithm(),
      &MemeticAlgorithm(),
      &AutoAlgorithm(),
  };
  return *algorithms;
}

absl::StatusOr<const MappingAlgorithm*> FindMappingAlgorithm(absl::string_view name) {
  std::string names;
  for (const MappingAlgorithm* algorithm : MappingAlgorithms()) {
    if (algorithm->name == name) return algorithm;
    absl::StrAppend(&names, names.empty() ? "" : ", ", algorithm->name);
  }
  return absl::NotFoundError(
      absl::StrFormat("no mapping algorithm %s; choose one of %s", name, names));
}

absl::Status CheckParameters(const MappingAlgorithm& algorithm, const AlgorithmOptions& options) {
  for (const auto& [name, value] : options.parameters) {
    const AlgorithmParameter* const known = FindParameter(algorithm, name);
    if (known == nullptr) {
      std::string names;
      for (const AlgorithmParameter& p : algorithm.parameters) {
        absl::StrAppend(&names, names.empty() ? "" : ", ", p.name);
      }
      return absl::InvalidArgumentError(absl::StrFormat("algorithm %s has no option %s; it has %s",
                                                        algorithm.name, name,
                                                        names.empty() ? "none" : names));
    }
    if (!(value >= known->least && value <= known->greatest)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("option %s of algorithm %s is %g; give %g to %g (%s)", name,
                          algorithm.name, value, known->least, known->greatest, known->meaning));
    }
  }
  return absl::OkStatus();
}

double ParameterOf(const MappingAlgorithm& algorithm, const AlgorithmOptions& options,
                   absl::string_view name) {
  double value = FindParameter(algorithm, name)->preset;
  for (const auto& [given, given_value] : options.parameters) {
    if (given == name) value = given_value;
  }
  return value;
}

absl::StatusOr<Mapped> RunAlgorithm(const MappingAlgorithm& algorithm,
                                    const MappingProblem& problem, const Mapping& start,
                                    const AlgorithmOptions& options, const SearchControl& control) {
  RETURN_IF_ERROR(CheckProblem(problem));
  RETURN_IF_ERROR(CheckParameters(algorithm, options));
  const Mapping& from = start.empty() ? problem.present() : start;
  RETURN_IF_ERROR(CheckMapping(*problem.places, problem.rank_count(), from));
  ASSIGN_OR_RETURN(Mapped mapped, algorithm.run(problem, from, options, control));
  RETURN_IF_ERROR(Annotate(CheckMapping(*problem.places, problem.rank_count(), mapped.mapping),
                           absl::StrFormat("algorithm %s", algorithm.name)));
  return mapped;
}

}  // namespace coppice
