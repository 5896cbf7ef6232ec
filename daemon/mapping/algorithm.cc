#include "daemon/mapping/algorithm.h"

#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/cluster/clusters.h"
#include "daemon/mapping/search/random.h"

namespace coppice {

const AlgorithmParameter* FindParameter(const MappingAlgorithm& algorithm, absl::string_view name) {
  const auto at = absl::c_find_if(
      algorithm.parameters, [&](const AlgorithmParameter& known) { return known.name == name; });
  return at == algorithm.parameters.end() ? nullptr : &*at;
}

absl::Span<const MappingAlgorithm* const> MappingAlgorithms() {
  static const auto* const algorithms = new std::vector<const MappingAlgorithm*>{
      new MappingAlgorithm{
          "identity", "the order as it is", true, {}, SearchMemory::kNothingElse, RunIdentity},
      new MappingAlgorithm{
          "block", "ranks fill place after place", false, {}, SearchMemory::kNothingElse, RunBlock},
      new MappingAlgorithm{"round-robin",
                           "one rank a place in turn",
                           false,
                           {},
                           SearchMemory::kNothingElse,
                           RunRoundRobin},
      new MappingAlgorithm{"random",
                           "the places shuffled by the seed",
                           false,
                           {},
                           SearchMemory::kNothingElse,
                           RunRandom},
      new MappingAlgorithm{
          "greedy",
          "Hoefler 2011, algorithm 1",
          false,
          {{"start", 0, 0, Places::kMaxSlots,
            "the place to start at, from 1; 0: several are tried"},
           {"starts", 4, 1, Places::kMaxSlots, "how many are tried"},
           {"near", 1, 0, 1,
            "ranks go 1: near the partner they are drawn to, 0: near the last placed"}},
          SearchMemory::kLinks,
          RunGreedy,
          false,
          "looks for places along links"},
      new MappingAlgorithm{"recursive",
                           "Hoefler 2011, algorithm 2",
                           false,
                           {},
                           SearchMemory::kNothingElse,
                           RunRecursive,
                           false,
                           "cuts the fabric in two"},
      new MappingAlgorithm{"rcm",
                           "Hoefler 2011, 3.3",
                           false,
                           {},
                           SearchMemory::kNothingElse,
                           RunRcm,
                           false,
                           "numbers the switches"},
      new MappingAlgorithm{
          "multicore",
          "Hoefler 2011, 3.4",
          false,
          {{"then", 2, 1, 3, "the method for the parts: 1 greedy, 2 recursive, 3 rcm"}},
          SearchMemory::kLinks,
          RunMulticore,
          false,
          "hands its parts to a method that needs a fabric"},
      new MappingAlgorithm{"threshold-accepting",
                           "Hoefler 2011, 3.5",
                           true,
                           {{"outer-iterations", 1000, 1, 1e12,
                             "times 20 exchanges, while the threshold falls to 0"}},
                           SearchMemory::kLinks,
                           RunThresholdAccepting,
                           false,
                           "counts links"},
      new MappingAlgorithm{"cp-nsc", "Wang 2015, algorithms 1 to 4", false, ClusterMapParameters(),
                           SearchMemory::kEigenvectors, RunCpNsc},
      new MappingAlgorithm{"hierarchical-clustering", "Wang 2015, 4.5", false,
                           HierarchicalParameters(), SearchMemory::kEigenvectors,
                           RunHierarchicalClustering},
      new MappingAlgorithm{
          "pair-exchange",
          "Wang 2015, 4.4.3, after Brandfass 2013; lessens the QAP cost, or the links where these "
          "are asked for",
          true,
          {{"iterations", 500000, 1, 1e15, "pairs of positions that are tried"},
           {"in-order", 0, 0, 1, "1: pairs one after the other, until none gains; 0: at random"}},
          SearchMemory::kNothingElse,
          RunPairExchange},
      new MappingAlgorithm{
          "congestion",
          "annealing of the bytes on every channel; the objective",
          true,
          {{"rounds", 48, 0, 1e6, "annealings at most"},
           {"starts", 1, 0, 1, "1: begins with the best of start and quick methods"},
           {"cuts", 4, 0, 1000, "cuts of the pattern along the cables' capacities to begin with"}},
          SearchMemory::kLinks,
          RunCongestion,
          false,
          "counts links"},
      new MappingAlgorithm{
          "multisection",
          "Schulz and Traeff 2017, hierarchical multisection; Kirchbach, Schulz and Traeff 2020",
          false,
          {{"tries", 1, 1, 1000, "partitions of each cut by METIS, from which the best is taken"},
           {"cycles", 1, 0, 1000, "refinements of each on all levels of the pattern"},
           {"combinations", 0, 0, 100000, "combinations of two of a cut's partitions"},
           {"pack", 1, 0, 1, "1: fill as few groups as hold the ranks; 0: spread over all"}},
          SearchMemory::kNothingElse,
          RunMultisection},
      new MappingAlgorithm{
          "local-search",
          "Schulz and Traeff 2017, sparse QAP; lessens the QAP cost, or the links where these are "
          "asked for",
          true,
          {{"near", 16, 1, 64, "places that are tried near each partner's"}},
          SearchMemory::kNothingElse,
          RunLocalSearch},
      new MappingAlgorithm{
          "annealing",
          "annealing near partners from a multisection; lessens the QAP cost, or the links where "
          "these are asked for",
          true,
          {{"hot", 0.3, 0.0001, 10, "first temperature over the mean change of a proposal"},
           {"proposals", 100, 1, 1e6, "for each rank in the first round"},
           {"rounds", 4, 1, 20, "each with twice the proposals of the one before"},
           {"multisection", 1, 0, 1, "1: begin with one, if it is better than the start"}},
          SearchMemory::kNothingElse,
          RunAnnealing},
      new MappingAlgorithm{
          "parallel-annealing",
          "Baranov 2022 (GraphHunter): workers that exchange the best; minimises the QAP cost",
          true,
          {{"workers", 0, 0, 4096, "of each process; 0: one for each slot up to 100, then 125"},
           {"iterations", 0, 0, 1e12, "temperatures; 0: 50,000 up to 256 slots, then 100,000"},
           {"candidates", 50, 1, 1e6, "swaps tried at each temperature"},
           {"exchange", 0, 0, 1e9,
            "iterations between exchanges; 0: 1,000, or 100 at 257 to 512 slots"},
           {"cauchy", 1, 0, 1, "1: Cauchy cooling, 0: proportional"},
           {"final-temperature", 0, 0, 1, "as a share of the first; 0: a thousandth"},
           {"patience", 0, 0, 1e12, "iterations without improvement; 0: 100 for each slot"}},
          SearchMemory::kDense,
          RunParallelAnnealing,
          true},
      new MappingAlgorithm{
          "parallel-genetic",
          "Baranov 2022 (GraphHunter): populations in a ring; minimises the QAP cost",
          true,
          {{"workers", 8, 1, 1024, "populations of each process"},
           {"population", 0, 0, 1e5, "individuals of each, at least one for each slot"},
           {"generations", 500, 1, 1e12, "of every population"},
           {"mutation", 0.3, 0, 0.95, "probability of a swap in a child, and of each further one"},
           {"master-slave", 0, 0, 1, "1: the master crosses the bests, 0: they go round the ring"}},
          SearchMemory::kPopulations,
          RunParallelGenetic,
          true},
      new MappingAlgorithm{
          "combined",
          "Baranov 2022 (GraphHunter): annealed populations in a ring; minimises the QAP cost",
          true,
          {{"workers", 8, 1, 1024, "populations of each process"},
           {"population", 0, 0, 1e5, "individuals of each, at least one for each slot"},
           {"iterations", 1000, 1, 1e12, "temperatures of each annealing, 50 candidates at each"},
           {"cauchy", 1, 0, 1, "1: Cauchy cooling, 0: proportional"},
           {"generations", 200, 1, 1e12, "of every population"},
           {"mutation", 0.3, 0, 0.95, "probability of a swap in a child, and of each further one"},
           {"master-slave", 0, 0, 1, "1: the master crosses the bests, 0: they go round the ring"}},
          SearchMemory::kPopulations,
          RunCombined,
          true},
      new MappingAlgorithm{
          "robust-tabu",
          "Taillard 1991: robust taboo search; minimises the QAP cost",
          true,
          {{"steps", 0, 0, 1e15, "of each search; 0: 2,000 for each slot"},
           {"searches", 2, 1, 1024, "beside each other, the first from the start"}},
          SearchMemory::kDense,
          RunRobustTabu},
      new MappingAlgorithm{
          "memetic",
          "annealed solutions that learn from each other on a ring of islands; minimises the QAP "
          "cost",
          true,
          {{"islands", 2, 1, 64, "populations of each process, each a unit of work for a thread"},
           {"population", 0, 0, 1000, "individuals of an island; below 2: 60 to 12, by size"},
           {"sweeps", 300, 1, 1e6, "over the pairs in each cooling"},
           {"epochs", 1, 1, 1e9, "fresh populations; many to use a budget of time to its end"}},
          SearchMemory::kDense,
          RunMemetic,
          true},
      new MappingAlgorithm{
          "auto",
          "a portfolio of all of them",
          true,
          {{"rounds", 0, 0, 1e6,
            "each with about twice the work of the one before; 0: until the deadline, or 12 "
            "without"}},
          SearchMemory::kPortfolio,
          RunAuto},
  };
  return *algorithms;
}

absl::StatusOr<const MappingAlgorithm*> FindMappingAlgorithm(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const MappingAlgorithm* algorithm : MappingAlgorithms()) {
    if (algorithm->name == name) return algorithm;
    names.push_back(algorithm->name);
  }
  return absl::InvalidArgumentError(absl::StrFormat("no mapping algorithm %s; choose one of %s",
                                                    name, absl::StrJoin(names, ", ")));
}

absl::Status CheckParameters(const MappingAlgorithm& algorithm, const AlgorithmOptions& options) {
  for (const auto& [name, value] : options.parameters) {
    const AlgorithmParameter* const known = FindParameter(algorithm, name);
    if (known == nullptr) {
      const std::string names = absl::StrJoin(
          algorithm.parameters, ", ",
          [](std::string* out, const auto& parameter) { absl::StrAppend(out, parameter.name); });
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

double MethodOptions::Of(absl::string_view name) const {
  double value = FindParameter(algorithm_, name)->preset;
  for (const auto& [given, given_value] : parameters) {
    if (given == name) value = given_value;
  }
  return value;
}

absl::StatusOr<Mapped> MappingAlgorithm::Run(const MappingProblem& problem, const Mapping& start,
                                             const AlgorithmOptions& options,
                                             const SearchControl& control) const {
  if (!needs_fabric.empty() && !problem.on_fabric()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s %s and there is no fabric: name one, or choose an algorithm that takes "
                        "distances, such as multisection",
                        name, needs_fabric));
  }
  return run(problem, start, MethodOptions(*this, options), control);
}

absl::StatusOr<Mapped> RunAlgorithm(const MappingAlgorithm& algorithm,
                                    const MappingProblem& problem, const Mapping& start,
                                    const AlgorithmOptions& options, const SearchControl& control) {
  RETURN_IF_ERROR(CheckProblem(problem));
  RETURN_IF_ERROR(CheckParameters(algorithm, options));
  const Mapping& from = start.empty() ? problem.present() : start;
  RETURN_IF_ERROR(CheckMapping(*problem.places, problem.rank_count(), from));
  ASSIGN_OR_RETURN(Mapped mapped, algorithm.Run(problem, from, options, control));
  RETURN_IF_ERROR(Annotate(CheckMapping(*problem.places, problem.rank_count(), mapped.mapping),
                           absl::StrFormat("algorithm %s", algorithm.name)));
  return mapped;
}

absl::StatusOr<Mapped> RunIdentity(const MappingProblem&, const Mapping& start,
                                   const MethodOptions&, const SearchControl&) {
  return Mapped{start, ""};
}

absl::StatusOr<Mapped> RunBlock(const MappingProblem& problem, const Mapping&, const MethodOptions&,
                                const SearchControl&) {
  Mapped mapped;
  for (uint32_t p = 0; p < problem.places->count(); ++p) {
    const uint32_t room = problem.rank_count() - static_cast<uint32_t>(mapped.mapping.size());
    mapped.mapping.insert(mapped.mapping.end(),
                          std::min(room, problem.places->capacity(PlaceIndex(p))), PlaceIndex(p));
  }
  return mapped;
}

absl::StatusOr<Mapped> RunRoundRobin(const MappingProblem& problem, const Mapping&,
                                     const MethodOptions&, const SearchControl&) {
  Mapped mapped;
  for (uint32_t round = 0; mapped.mapping.size() < problem.rank_count(); ++round) {
    for (uint32_t p = 0; p < problem.places->count(); ++p) {
      if (mapped.mapping.size() == problem.rank_count()) break;
      if (round < problem.places->capacity(PlaceIndex(p))) mapped.mapping.emplace_back(p);
    }
  }
  return mapped;
}

absl::StatusOr<Mapped> RunRandom(const MappingProblem& problem, const Mapping&,
                                 const MethodOptions& options, const SearchControl&) {
  Mapping slots = problem.places->PresentOrder(problem.places->slot_count());
  Xoshiro random(options.seed);
  Shuffle(slots, random);
  slots.resize(problem.rank_count());
  return Mapped{std::move(slots), ""};
}

}  // namespace coppice
