#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/dense/dense_search.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search_control.h"

namespace coppice {
namespace {

struct DenseIslandOptions {
  uint32_t population = 20;
  uint32_t sweeps = 300;  // of each cooling
};

// At the middle temperature a solution this many times dearer than the best of its kind has frozen
// into another basin. Taillard's instances have basins at 2 to 4 times; within one, 15 % is much.
constexpr double kOtherBasin = 1.3;
// So many for each individual may be thrown away: a problem may have many basins, or a best of 0.
constexpr uint32_t kCullsPerIndividual = 3;
// What a child is reheated to, against the middle temperature: groups melt, the whole does not.
constexpr double kReheat = 1.5;
// One in so many of the ranks on which both parents agree is freed as well.
constexpr uint32_t kFreedShare = 10;

// A population of annealed solutions, of which the search keeps several. Not thread-safe. What it
// does depends on its options and seed alone, unless stopped.
class DenseIsland final {
 public:
  // From an order of its own: no two islands have quite the same temperatures.
  DenseIsland(const DenseQap& qap, const DenseIslandOptions& options, uint64_t seed,
              const SearchControl& control, DenseBest& best)
      : options_(options),
        control_(control),
        best_(best),
        random_(seed),
        state_(qap, RandomDenseOrder(qap.size(), random_)),
        temperatures_(MeasureTemperatures(state_, random_, control)),
        all_(Numbers(qap.size())) {
    DescendDense(state_, control_);
    measured_ = Solution();
    best_.Report(measured_.order, measured_.cost);
  }

  // Fills the population from random orders.
  void Populate() {
    const DenseTemperatures& t = temperatures_;
    double cheapest = std::numeric_limits<double>::infinity();  // at the middle temperature
    uint32_t culls_left = kCullsPerIndividual * options_.population;
    while (population_.size() < options_.population) {
      state_.Reset(RandomDenseOrder(state_.size(), random_));
      bool cooled = Cool(all_, t.start, t.middle);
      const double middle_cost = state_.cost();
      if (cooled && culls_left > 0) {
        if (middle_cost > kOtherBasin * cheapest) {
          --culls_left;
          continue;
        }
        if (kOtherBasin * middle_cost < cheapest && !population_.empty()) {
          culls_left -= std::min(culls_left, static_cast<uint32_t>(population_.size()));
          population_.clear();
        }
      }
      cheapest = std::min(cheapest, middle_cost);
      cooled = cooled && Cool(all_, t.middle, t.end);
      Adopt(cooled);
      if (!cooled) return;
    }
  }

  // One more individual, which keeps of `order` what the middle temperature leaves.
  void Settle(const DenseOrder& order) {
    state_.Reset(order);
    Adopt(Cool(all_, temperatures_.middle, temperatures_.end));
  }

  // Makes `count` children.
  void Breed(uint32_t count) {
    const auto size = static_cast<uint32_t>(population_.size());
    for (uint32_t i = 0; i < count && size >= 2 && !stagnant() && !control_.stopped(); ++i) {
      const uint32_t mother = random_.Below(size);
      const uint32_t father = (mother + 1 + random_.Below(size - 1)) % size;
      Cross(population_[mother], population_[father]);
      DenseSolution& worse =
          population_[population_[father] < population_[mother] ? mother : father];
      ++idle_;
      if (state_.cost() >= worse.cost || IsKnown(population_, state_.cost())) continue;
      worse = Solution();
      best_.Report(worse.order, worse.cost);
      idle_ = 0;
    }
  }

  // Takes the place of the worst, if better and like no other.
  void Receive(const DenseSolution& immigrant) {
    if (!IsKnown(population_, immigrant.cost)) ReplaceDearest(immigrant, population_);
  }

  // Nothing better has come for three times the population.
  bool stagnant() const { return idle_ >= 3 * options_.population; }
  void Awake() { idle_ = 0; }

  const DenseSolution& best() const {
    const auto cheapest = absl::c_min_element(population_);
    return cheapest != population_.end() && *cheapest < measured_ ? *cheapest : measured_;
  }

 private:
  DenseSolution Solution() const { return {state_.order(), state_.cost()}; }

  bool Cool(absl::Span<const uint32_t> free, double from, double to) {
    return annealer_.Run(state_, free, from, to, options_.sweeps, random_, control_);
  }

  void Adopt(bool cooled) {
    if (cooled) DescendDense(state_, control_);
    population_.push_back(Solution());
    best_.Report(state_.order(), state_.cost());
  }

  void Cross(const DenseSolution& mother, const DenseSolution& father) {
    const uint32_t size = state_.size();
    std::vector<bool> loose(size);
    for (uint32_t r = 0; r < size; ++r) loose[r] = mother.order[r] != father.order[r];
    for (uint32_t i = 0; i < size / kFreedShare + 2; ++i) loose[random_.Below(size)] = true;
    std::vector<uint32_t> free;
    for (uint32_t r = 0; r < size; ++r) {
      if (loose[r]) free.push_back(r);
    }
    state_.Reset(mother.order);
    if (Cool(free, kReheat * temperatures_.middle, temperatures_.end)) {
      DescendDense(state_, control_);
    }
  }

  const DenseIslandOptions options_;
  const SearchControl& control_;
  DenseBest& best_;
  Xoshiro random_;
  DenseState state_;
  const DenseTemperatures temperatures_;
  DenseSolution measured_;  // what the measuring left
  DenseAnnealer annealer_;
  const std::vector<uint32_t> all_;
  std::vector<DenseSolution> population_;
  uint32_t idle_ = 0;  // children since one was kept
};

// Fewer where each is dearer: 60 up to 166 slots, 12 from 833.
uint32_t PresetPopulation(uint32_t size) { return std::clamp(10'000 / size, 12u, 60u); }

class MemeticSearch final {
 public:
  MemeticSearch(const DenseQap& qap, const DenseIslandOptions& island, const MethodOptions& options,
                const SearchControl& control, DenseBest& best)
      : qap_(qap),
        island_(island),
        options_(options),
        control_(control),
        team_(control.team()),
        count_(options.Count("islands")),
        first_(team_.process() * count_),
        best_(best) {}

  // The best of all epochs; `start` takes part in the first. Errors are the team's.
  absl::StatusOr<DenseSolution> Run(const DenseOrder& start) {
    DenseSolution champion{start, qap_.Cost(start)};
    RETURN_IF_ERROR(team_.ShareBest(champion));
    best_.Report(champion.order, champion.cost);
    if (qap_.size() < 2) return champion;
    for (epoch_ = 0; epoch_ < options_.Of("epochs"); ++epoch_) {
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
    islands_.resize(count_);
    RunLogicalWorkers(options_.threads, count_, [&](uint32_t i) {
      islands_[i] = std::make_unique<DenseIsland>(
          qap_, island_, WorkerSeed(options_.seed, epoch_ + 1, first_ + i), control_, best_);
      islands_[i]->Populate();
      if (first_ + i == 0 && epoch_ == 0 && !control_.stopped()) islands_[i]->Settle(start);
    });
  }

  // Rounds of breeding with the best handed around the ring, until nothing comes of it.
  absl::Status Evolve() {
    const auto idle = [](const auto& island) { return island->stagnant(); };
    const auto size = static_cast<uint32_t>(islands_.size());
    const uint32_t round = std::max(2u, island_.population / 4);
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
  const DenseIslandOptions island_;
  const MethodOptions& options_;
  const SearchControl& control_;
  SearchTeam& team_;
  const uint32_t count_, first_;  // of this process's islands
  DenseBest& best_;
  uint32_t epoch_ = 0;
  std::vector<std::unique_ptr<DenseIsland>> islands_;
};

}  // namespace

absl::StatusOr<Mapped> RunMemetic(const MappingProblem& problem, const Mapping& start,
                                  const MethodOptions& options, const SearchControl& control) {
  ASSIGN_OR_RETURN(const DenseQap qap, DenseQap::Of(problem));
  const uint32_t given = options.Count("population");
  const uint32_t population = given < 2 ? PresetPopulation(qap.size()) : given;
  DenseBest best(problem, control);
  MemeticSearch search(qap, {population, options.Count("sweeps")}, options, control, best);
  ASSIGN_OR_RETURN(const DenseSolution found, search.Run(qap.OrderOf(problem, start)));
  return Mapped{
      DenseQap::MappingOf(problem, found.order),
      absl::StrFormat("%d islands of %d", options.Count("islands") * control.team().process_count(),
                      population)};
}

namespace {

// Fills the population of worker `number`, counted over all processes; stopped early, with at least
// one individual.
using FillPopulation = absl::FunctionRef<void(uint32_t number, uint32_t individuals,
                                              DenseGenetic& population, DenseBest& reported)>;

// What "parallel-genetic" and "combined" have in common: populations of at least `least`
// individuals, the start in the first of them, and their evolution.
absl::StatusOr<Mapped> RunPopulations(const MappingProblem& problem, const DenseQap& qap,
                                      const Mapping& start, const MethodOptions& options,
                                      const SearchControl& control, uint32_t least,
                                      absl::string_view kind, FillPopulation fill) {
  const uint32_t workers = options.Count("workers");
  const uint32_t individuals = std::max({options.Count("population"), qap.size(), least});
  RETURN_IF_ERROR(CheckPopulationMemory(qap.size(), uint64_t{workers} * individuals));

  const DenseEvolution evolution = {.has_master = options.Is("master-slave"),
                                    .generations = static_cast<uint64_t>(options.Of("generations")),
                                    .threads = options.threads,
                                    .mutation = options.Of("mutation"),
                                    .seed = options.seed};
  const uint32_t first = control.team().process() * workers;  // of this process
  std::vector<DenseGenetic> populations;
  for (uint32_t i = 0; i < workers; ++i) {
    populations.emplace_back(qap, evolution.mutation, WorkerSeed(options.seed, 2, first + i));
  }
  if (first == 0) populations[0].Add(qap.OrderOf(problem, start));
  DenseBest reported(problem, control);
  RunLogicalWorkers(options.threads, workers,
                    [&](uint32_t i) { fill(first + i, individuals, populations[i], reported); });
  ASSIGN_OR_RETURN(const DenseSolution best,
                   Evolve(populations, evolution, qap, control, reported));
  return Mapped{
      DenseQap::MappingOf(problem, best.order),
      absl::StrFormat("%d %s of %d", workers * control.team().process_count(), kind, individuals)};
}

// Smaller populations of small problems become all alike before they find anything.
constexpr uint32_t kMinIndividuals = 50;

}  // namespace

absl::StatusOr<Mapped> RunParallelGenetic(const MappingProblem& problem, const Mapping& start,
                                          const MethodOptions& options,
                                          const SearchControl& control) {
  ASSIGN_OR_RETURN(const DenseQap qap, DenseQap::Of(problem));
  return RunPopulations(problem, qap, start, options, control, kMinIndividuals, "populations",
                        [&](uint32_t, uint32_t individuals, DenseGenetic& population, DenseBest&) {
                          while (population.count() < individuals) {
                            if (population.count() > 0 && control.stopped()) return;
                            population.AddRandom();
                          }
                        });
}

absl::Status CheckPopulationMemory(uint32_t size, uint64_t individuals) {
  if (individuals * size * sizeof(uint32_t) <= kMaxPopulationBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%d individuals of %d slots take more than %d bytes; choose fewer workers, or "
      "an algorithm without populations",
      individuals, size, kMaxPopulationBytes));
}

absl::StatusOr<Mapped> RunCombined(const MappingProblem& problem, const Mapping& start,
                                   const MethodOptions& options, const SearchControl& control) {
  ASSIGN_OR_RETURN(const DenseQap qap, DenseQap::Of(problem));
  if (qap.size() < 2) return Mapped{start, "one slot"};
  DenseSchedule schedule = MeasuredSchedule(qap, WorkerSeed(options.seed, 0, 0));
  schedule.cauchy = options.Is("cauchy");
  schedule.iterations = static_cast<uint64_t>(options.Of("iterations"));
  return RunPopulations(
      problem, qap, start, options, control, 1, "annealed populations",
      [&](uint32_t number, uint32_t individuals, DenseGenetic& population, DenseBest& reported) {
        Xoshiro random(WorkerSeed(options.seed, 1, number));
        DenseState state(qap, RandomDenseOrder(qap.size(), random));
        while (population.count() < individuals) {
          if (population.count() > 0 && control.stopped()) return;
          state.Reset(RandomDenseOrder(qap.size(), random));
          const DenseSolution annealed =
              RunChain(state, schedule, 0, schedule.iterations, random, control);
          reported.Report(annealed.order, annealed.cost);
          population.Add(annealed.order);
        }
      });
}

}  // namespace coppice
