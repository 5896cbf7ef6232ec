#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

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

// A population of annealed solutions of a dense problem, and how it makes better ones: what the
// memetic search (algorithm/memetic.cc, which explains it) keeps several of.

struct DenseIslandOptions {
  uint32_t population = 20;
  uint32_t sweeps = 300;  // of each cooling
};

// Not thread-safe. What it does depends on its options and seed alone, unless stopped.
class DenseIsland final {
 public:
  DenseIsland(const DenseQap& qap, const DenseIslandOptions& options, uint64_t seed,
              const SearchControl& control, DenseBest& best);

  // Measures the temperatures first, from an order of its own: no two islands have quite the same.
  void Measure();
  // Fills the population from random orders. After Measure, as all below.
  void Populate();
  // One more individual, which keeps of `order` what the middle temperature leaves.
  void Settle(const DenseOrder& order);
  // Makes `count` children.
  void Breed(uint32_t count);
  // Takes the place of the worst, if better and like no other.
  void Receive(const DenseSolution& immigrant);
  // Nothing better has come for three times the population.
  bool stagnant() const { return idle_ >= 3 * options_.population; }
  void Awake() { idle_ = 0; }

  const DenseSolution& best() const;

 private:
  bool known(double cost) const;
  void Adopt(bool cooled);
  void Cross(const DenseSolution& mother, const DenseSolution& father);

  const DenseIslandOptions options_;
  const SearchControl& control_;
  DenseBest& best_;
  Xoshiro random_;
  DenseState state_;
  DenseTemperatures temperatures_;
  DenseSolution measured_;  // what the measuring left
  DenseAnnealer annealer_;
  std::vector<uint32_t> all_;
  std::vector<DenseSolution> population_;
  uint32_t idle_ = 0;  // children since one was kept
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

DenseIsland::DenseIsland(const DenseQap& qap, const DenseIslandOptions& options, uint64_t seed,
                         const SearchControl& control, DenseBest& best)
    : options_(options),
      control_(control),
      best_(best),
      random_(seed),
      state_(qap, RandomDenseOrder(qap.size(), random_)),
      all_(qap.size()) {
  std::iota(all_.begin(), all_.end(), 0);
}

const DenseSolution& DenseIsland::best() const {
  const DenseSolution* best = &measured_;
  for (const DenseSolution& solution : population_) {
    if (solution.cost < best->cost) best = &solution;
  }
  return *best;
}

bool DenseIsland::known(double cost) const {
  return std::any_of(population_.begin(), population_.end(),
                     [&](const DenseSolution& solution) { return solution.cost == cost; });
}

void DenseIsland::Adopt(bool cooled) {
  if (cooled) DescendDense(state_, control_);
  population_.push_back({state_.order(), state_.cost()});
  best_.Report(state_.order(), state_.cost());
}

void DenseIsland::Measure() {
  temperatures_ = MeasureTemperatures(state_, random_, control_);
  DescendDense(state_, control_);
  measured_ = {state_.order(), state_.cost()};
  best_.Report(measured_.order, measured_.cost);
}

void DenseIsland::Settle(const DenseOrder& order) {
  state_.Reset(order);
  Adopt(annealer_.Run(state_, all_, temperatures_.middle, temperatures_.end, options_.sweeps,
                      random_, control_));
}

void DenseIsland::Populate() {
  const DenseTemperatures& t = temperatures_;
  double cheapest = std::numeric_limits<double>::infinity();  // at the middle temperature
  uint32_t culls_left = kCullsPerIndividual * options_.population;
  while (population_.size() < options_.population) {
    state_.Reset(RandomDenseOrder(state_.size(), random_));
    bool cooled =
        annealer_.Run(state_, all_, t.start, t.middle, options_.sweeps, random_, control_);
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
    cooled =
        cooled && annealer_.Run(state_, all_, t.middle, t.end, options_.sweeps, random_, control_);
    Adopt(cooled);
    if (!cooled) return;
  }
}

void DenseIsland::Cross(const DenseSolution& mother, const DenseSolution& father) {
  const uint32_t size = state_.size();
  std::vector<bool> loose(size);
  for (uint32_t r = 0; r < size; ++r) loose[r] = mother.order[r] != father.order[r];
  for (uint32_t i = 0; i < size / kFreedShare + 2; ++i) loose[random_.Below(size)] = true;
  std::vector<uint32_t> free;
  for (uint32_t r = 0; r < size; ++r) {
    if (loose[r]) free.push_back(r);
  }
  state_.Reset(mother.order);
  const DenseTemperatures& t = temperatures_;
  if (annealer_.Run(state_, free, kReheat * t.middle, t.end, options_.sweeps, random_, control_)) {
    DescendDense(state_, control_);
  }
}

void DenseIsland::Breed(uint32_t count) {
  const auto size = static_cast<uint32_t>(population_.size());
  for (uint32_t i = 0; i < count && size >= 2 && !stagnant() && !control_.stopped(); ++i) {
    const uint32_t mother = random_.Below(size);
    const uint32_t father = (mother + 1 + random_.Below(size - 1)) % size;
    Cross(population_[mother], population_[father]);
    DenseSolution& worse = population_[mother].cost > population_[father].cost
                               ? population_[mother]
                               : population_[father];
    ++idle_;
    if (state_.cost() >= worse.cost || known(state_.cost())) continue;
    worse = {state_.order(), state_.cost()};
    best_.Report(worse.order, worse.cost);
    idle_ = 0;
  }
}

void DenseIsland::Receive(const DenseSolution& immigrant) {
  const auto worst = std::max_element(population_.begin(), population_.end(),
                                      [](const auto& a, const auto& b) { return a.cost < b.cost; });
  if (immigrant.cost < worst->cost && !known(immigrant.cost)) *worst = immigrant;
}

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

namespace {

// Fills the population of worker `number`, counted over all processes; stopped early, with at least
// one individual.
using FillPopulation = absl::FunctionRef<void(uint32_t number, uint32_t individuals,
                                              DenseGenetic& population, DenseBest& reported)>;

// What "parallel-genetic" and "combined" have in common: populations of at least `least`
// individuals, the start in the first of them, and their evolution.
absl::StatusOr<Mapped> RunPopulations(const MappingAlgorithm& self, const MappingProblem& problem,
                                      const DenseQap& qap, const Mapping& start,
                                      const AlgorithmOptions& options, const SearchControl& control,
                                      uint32_t least, absl::string_view kind, FillPopulation fill) {
  const auto parameter = [&](absl::string_view name) { return ParameterOf(self, options, name); };
  const auto workers = static_cast<uint32_t>(parameter("workers"));
  const uint32_t individuals =
      std::max({static_cast<uint32_t>(parameter("population")), qap.size(), least});
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

absl::StatusOr<Mapped> ParallelGenetic(const MappingProblem& problem, const Mapping& start,
                                       const AlgorithmOptions& options,
                                       const SearchControl& control) {
  ASSIGN_OR_RETURN(const DenseQap qap, DenseQap::Of(problem));
  return RunPopulations(ParallelGeneticAlgorithm(), problem, qap, start, options, control,
                        kMinIndividuals, "populations",
                        [&](uint32_t, uint32_t individuals, DenseGenetic& population, DenseBest&) {
                          while (population.count() < individuals) {
                            if (population.count() > 0 && control.stopped()) return;
                            population.AddRandom();
                          }
                        });
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

namespace {

absl::StatusOr<Mapped> Combined(const MappingProblem& problem, const Mapping& start,
                                const AlgorithmOptions& options, const SearchControl& control) {
  ASSIGN_OR_RETURN(const DenseQap qap, DenseQap::Of(problem));
  if (qap.size() < 2) return Mapped{start, "one slot"};
  const auto parameter = [&](absl::string_view name) {
    return ParameterOf(CombinedAlgorithm(), options, name);
  };
  DenseSchedule schedule = MeasuredSchedule(qap, WorkerSeed(options.seed, 0, 0));
  schedule.cooling = parameter("cauchy") > 0 ? DenseCooling::kCauchy : DenseCooling::kProportional;
  schedule.iterations = static_cast<uint64_t>(parameter("iterations"));
  return RunPopulations(
      CombinedAlgorithm(), problem, qap, start, options, control, 1, "annealed populations",
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
