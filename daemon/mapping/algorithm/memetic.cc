#include "daemon/mapping/algorithm/memetic.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/dense/dense_island.h"
#include "daemon/mapping/search/dense/dense_orders.h"
#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/logical_workers.h"

namespace coppice {
namespace {

struct MemeticOptions {
  uint32_t islands, epochs, threads;
  uint64_t seed;
  DenseIslandOptions island;
};

// Fewer where each is dearer: 60 up to 166 slots, 12 from 833.
uint32_t PresetPopulation(uint32_t size) { return std::clamp(10'000 / size, 12u, 60u); }

class MemeticSearch final {
 public:
  MemeticSearch(const DenseQap& qap, const MemeticOptions& options, const SearchControl& control,
                DenseBest& best)
      : qap_(qap),
        options_(options),
        control_(control),
        team_(control.team()),
        first_(team_.process() * options.islands),
        best_(best) {}

  // The best of all epochs; `start` takes part in the first. Errors are the team's.
  absl::StatusOr<DenseSolution> Run(const DenseOrder& start) {
    DenseSolution champion{start, qap_.Cost(start)};
    RETURN_IF_ERROR(team_.ShareBest(champion));
    best_.Report(champion.order, champion.cost);
    if (qap_.size() < 2) return champion;
    for (epoch_ = 0; epoch_ < options_.epochs; ++epoch_) {
      ASSIGN_OR_RETURN(const bool stopped, team_.Any(control_.stopped()));
      if (stopped) break;
      Settle(start);
      RETURN_IF_ERROR(Evolve());
      if (epoch_ > 0) {
        for (auto& island : islands_) island->Receive(champion), island->Awake();
        RETURN_IF_ERROR(Evolve());
      }
      for (const auto& island : islands_) {
        if (island->best().cost < champion.cost) champion = island->best();
      }
      RETURN_IF_ERROR(team_.ShareBest(champion));
    }
    return champion;
  }

 private:
  void Settle(const DenseOrder& start) {
    islands_.clear();
    islands_.resize(options_.islands);
    RunLogicalWorkers(options_.threads, options_.islands, [&](uint32_t i) {
      islands_[i] = std::make_unique<DenseIsland>(qap_, options_.island,
                                                  WorkerSeed(options_.seed, epoch_ + 1, first_ + i),
                                                  control_, best_);
      islands_[i]->Measure();
      islands_[i]->Populate();
      if (first_ + i == 0 && epoch_ == 0 && !control_.stopped()) islands_[i]->Settle(start);
    });
  }

  // Rounds of breeding with the best handed around the ring, until nothing comes of it.
  absl::Status Evolve() {
    const auto idle = [](const auto& island) { return island->stagnant(); };
    const auto size = static_cast<uint32_t>(islands_.size());
    const uint32_t round = std::max(2u, options_.island.population / 4);
    while (true) {
      ASSIGN_OR_RETURN(const bool alive,
                       team_.Any(!std::all_of(islands_.begin(), islands_.end(), idle)));
      ASSIGN_OR_RETURN(const bool stopped, team_.Any(control_.stopped()));
      if (!alive || stopped) return absl::OkStatus();
      RunLogicalWorkers(options_.threads, size, [&](uint32_t i) { islands_[i]->Breed(round); });
      std::vector<DenseSolution> bests;  // of the island before
      for (const auto& island : islands_) bests.push_back(island->best());
      std::rotate(bests.begin(), bests.end() - 1, bests.end());
      RETURN_IF_ERROR(team_.PassOn(bests.front()));
      if (size * team_.process_count() < 2) continue;
      for (uint32_t i = 0; i < size; ++i) islands_[i]->Receive(bests[i]);
    }
  }

  const DenseQap& qap_;
  MemeticOptions options_;
  const SearchControl& control_;
  SearchTeam& team_;
  const uint32_t first_;  // of this process's islands
  DenseBest& best_;
  uint32_t epoch_ = 0;
  std::vector<std::unique_ptr<DenseIsland>> islands_;
};

absl::StatusOr<Mapped> Memetic(const MappingProblem& problem, const Mapping& start,
                               const AlgorithmOptions& options, const SearchControl& control) {
  ASSIGN_OR_RETURN(const DenseQap qap, DenseQap::Of(problem));
  const auto parameter = [&](absl::string_view name) {
    return static_cast<uint32_t>(ParameterOf(MemeticAlgorithm(), options, name));
  };
  MemeticOptions memetic{
      parameter("islands"), parameter("epochs"), options.threads, options.seed, {}};
  memetic.island.population = parameter("population");
  if (memetic.island.population < 2) memetic.island.population = PresetPopulation(qap.size());
  memetic.island.sweeps = parameter("sweeps");
  DenseBest best(problem, control);
  ASSIGN_OR_RETURN(const DenseSolution found,
                   MemeticSearch(qap, memetic, control, best).Run(qap.OrderOf(problem, start)));
  return Mapped{
      DenseQap::MappingOf(problem, found.order),
      absl::StrFormat("%d islands of %d", memetic.islands * control.team().process_count(),
                      memetic.island.population)};
}

}  // namespace

const MappingAlgorithm& MemeticAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{
      "memetic",
      "annealed solutions that learn from each other on a ring of islands; minimises the QAP cost",
      true,
      {{"islands", 2, 1, 64, "populations of each process, each a unit of work for a thread"},
       {"population", 0, 0, 1000, "individuals of an island; below 2: 60 to 12, by size"},
       {"sweeps", 300, 1, 1e6, "over the pairs in each cooling"},
       {"epochs", 1, 1, 1e9, "fresh populations; many to use a budget of time to its end"}},
      Memetic,
      true};
  return *entry;
}

}  // namespace coppice
