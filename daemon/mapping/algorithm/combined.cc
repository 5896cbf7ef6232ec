#include "daemon/mapping/algorithm/combined.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/parallel_genetic.h"
#include "daemon/mapping/search/dense/dense_chain.h"
#include "daemon/mapping/search/dense/dense_genetic.h"
#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/logical_workers.h"

namespace coppice {
namespace {

// Fills `population` with annealed solutions; stopped early, with at least one.
void AnnealPopulation(const DenseQap& qap, const DenseSchedule& schedule, uint32_t individuals,
                      uint64_t seed, const SearchControl& control, DenseBest& reported,
                      DenseGenetic& population) {
  Xoshiro random(seed);
  DenseState state(qap, RandomDenseOrder(qap.size(), random));
  while (population.count() < individuals) {
    if (population.count() > 0 && control.stopped()) return;
    state.Reset(RandomDenseOrder(qap.size(), random));
    const DenseSolution annealed =
        RunChain(state, schedule, 0, schedule.iterations, random, control);
    reported.Report(annealed.order, annealed.cost);
    population.Add(annealed.order);
  }
}

absl::StatusOr<Mapped> Combined(const MappingProblem& problem, const Mapping& start,
                                const AlgorithmOptions& options, const SearchControl& control) {
  ASSIGN_OR_RETURN(const DenseQap qap, DenseQap::Of(problem));
  if (qap.size() < 2) return Mapped{start, "one slot"};
  const auto parameter = [&](absl::string_view name) {
    return ParameterOf(CombinedAlgorithm(), options, name);
  };
  const auto workers = static_cast<uint32_t>(parameter("workers"));
  const uint32_t individuals = std::max(static_cast<uint32_t>(parameter("population")), qap.size());
  RETURN_IF_ERROR(CheckPopulationMemory(qap.size(), uint64_t{workers} * individuals));

  DenseSchedule schedule = MeasuredSchedule(qap, WorkerSeed(options.seed, 0, 0));
  schedule.cooling = parameter("cauchy") > 0 ? DenseCooling::kCauchy : DenseCooling::kProportional;
  schedule.iterations = static_cast<uint64_t>(parameter("iterations"));
  DenseEvolution evolution;
  evolution.scheme = parameter("master-slave") > 0 ? DenseScheme::kMasterSlave : DenseScheme::kRing;
  evolution.generations = static_cast<uint64_t>(parameter("generations"));
  evolution.threads = options.threads;
  evolution.mutation = parameter("mutation");
  evolution.seed = options.seed;

  DenseBest reported(problem, control);
  const uint32_t first = control.team().process() * workers;  // of this process
  std::vector<DenseGenetic> populations;
  for (uint32_t i = 0; i < workers; ++i) {
    populations.emplace_back(qap, evolution.mutation, WorkerSeed(options.seed, 2, first + i));
  }
  if (first == 0) populations[0].Add(qap.OrderOf(problem, start));
  RunLogicalWorkers(options.threads, workers, [&](uint32_t i) {
    AnnealPopulation(qap, schedule, individuals, WorkerSeed(options.seed, 1, first + i), control,
                     reported, populations[i]);
  });
  ASSIGN_OR_RETURN(const DenseSolution best,
                   Evolve(populations, evolution, qap, control, reported));
  return Mapped{DenseQap::MappingOf(problem, best.order),
                absl::StrFormat("%d annealed populations of %d",
                                workers * control.team().process_count(), individuals)};
}

}  // namespace

const MappingAlgorithm& CombinedAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{
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
      Combined,
      true};
  return *entry;
}

}  // namespace coppice
