#include "daemon/mapping/algorithm/parallel_genetic.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/dense/dense_genetic.h"
#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/logical_workers.h"

namespace coppice {
namespace {

// Smaller populations of small problems become all alike before they find anything.
constexpr uint32_t kLeastIndividuals = 50;

absl::StatusOr<Mapped> ParallelGenetic(const MappingProblem& problem, const Mapping& start,
                                       const AlgorithmOptions& options,
                                       const SearchControl& control) {
  ASSIGN_OR_RETURN(const DenseQap qap, DenseQap::Of(problem));
  const auto parameter = [&](absl::string_view name) {
    return ParameterOf(ParallelGeneticAlgorithm(), options, name);
  };
  const auto workers = static_cast<uint32_t>(parameter("workers"));
  const uint32_t individuals =
      std::max({static_cast<uint32_t>(parameter("population")), qap.size(), kLeastIndividuals});
  RETURN_IF_ERROR(CheckPopulationMemory(qap.size(), uint64_t{workers} * individuals));

  DenseEvolution evolution;
  evolution.scheme = parameter("master-slave") > 0 ? DenseScheme::kMasterSlave : DenseScheme::kRing;
  evolution.generations = static_cast<uint64_t>(parameter("generations"));
  evolution.threads = options.threads;
  evolution.mutation = parameter("mutation");
  evolution.seed = options.seed;
  const uint32_t first = control.team().process() * workers;  // of this process
  std::vector<DenseGenetic> populations;
  for (uint32_t i = 0; i < workers; ++i) {
    populations.emplace_back(qap, evolution.mutation, WorkerSeed(options.seed, 2, first + i));
  }
  const DenseOrder present = qap.OrderOf(problem, start);
  RunLogicalWorkers(options.threads, workers, [&](uint32_t i) {
    if (first + i == 0) populations[i].Add(present);
    while (populations[i].count() < individuals) {
      if (populations[i].count() > 0 && control.stopped()) break;
      populations[i].AddRandom();
    }
  });
  DenseBest reported(problem, control);
  ASSIGN_OR_RETURN(const DenseSolution best,
                   Evolve(populations, evolution, qap, control, reported));
  return Mapped{DenseQap::MappingOf(problem, best.order),
                absl::StrFormat("%d populations of %d", workers * control.team().process_count(),
                                individuals)};
}

}  // namespace

absl::Status CheckPopulationMemory(uint32_t size, uint64_t individuals) {
  if (individuals * size * sizeof(uint32_t) <= kMaxPopulationBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%d individuals of %d slots take more than %d bytes; choose fewer workers, or "
      "an algorithm without populations",
      individuals, size, kMaxPopulationBytes));
}

const MappingAlgorithm& ParallelGeneticAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{
      "parallel-genetic",
      "Baranov 2022 (GraphHunter): populations in a ring; minimises the QAP cost",
      true,
      {{"workers", 8, 1, 1024, "populations of each process"},
       {"population", 0, 0, 1e5, "individuals of each, at least one for each slot"},
       {"generations", 500, 1, 1e12, "of every population"},
       {"mutation", 0.3, 0, 0.95, "probability of a swap in a child, and of each further one"},
       {"master-slave", 0, 0, 1, "1: the master crosses the bests, 0: they go round the ring"}},
      ParallelGenetic,
      true};
  return *entry;
}

}  // namespace coppice
