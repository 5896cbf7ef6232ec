#include "daemon/mapping/algorithm/auto_rounds.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>
#include <utility>
#include <variant>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/partition.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse_anneal.h"
#include "daemon/mapping/search/sparse_arrange.h"
#include "daemon/mapping/search/sparse_multilevel.h"
#include "daemon/mapping/search/sparse_swaps.h"

namespace coppice {
namespace {

constexpr double kFirstProposals = 30;  // of a rank in the first round of annealing
constexpr double kHot = 0.3;
constexpr size_t kPopulation = 8;
constexpr double kWorthAParent = 1.1;  // times the best score: who is worse is forgotten
constexpr uint32_t kSettlingCycles = 8;
constexpr double kWorthACycle = 0.25;   // of what the best cycle has gained
constexpr uint32_t kManyRanks = 20000;  // beyond, the quadratic algorithms of other files wait
// A pattern of which more than this part of all pairs communicates is dense, up to so many ranks.
constexpr double kDense = 0.25;
constexpr uint32_t kDenseRanks = 1024;
constexpr uint32_t kFirstDenseRound = 4;  // after what takes milliseconds

}  // namespace

Rounds::Rounds(const MappingProblem& problem, const SparseProblem& sparse,
               const AlgorithmOptions& options, const SearchControl& control, Incumbent& incumbent)
    : problem_(problem),
      sparse_(sparse),
      options_(options),
      control_(control),
      incumbent_(incumbent),
      streaming_([this] { return control_.stopped(); },
                 [this](const Mapping& mapping) { incumbent_.Stream(mapping); }) {}

bool Rounds::IsDense() const {
  const double ranks = problem_.rank_count();
  if (ranks > kDenseRanks || sparse_.HasLargePlaces()) return false;
  if (std::holds_alternative<MatrixDistances>(problem_.distances->form())) return true;
  return static_cast<double>(problem_.pattern->pair_count()) > kDense * ranks * (ranks - 1) / 2;
}

absl::Status Rounds::RunAll(const std::vector<Task>& tasks) {
  std::vector<absl::StatusOr<Mapping>> results(tasks.size(), absl::CancelledError(""));
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < tasks.size(); i = next++) {
      if (control_.stopped()) return;
      results[i] = tasks[i].run();
      if (results[i].ok()) incumbent_.Stream(*results[i]);
    }
  };
  std::vector<std::thread> workers;
  const size_t wanted = std::min<size_t>(std::max(1U, options_.threads), tasks.size());
  for (size_t t = 1; t < wanted; ++t) workers.emplace_back(work);
  work();
  for (std::thread& worker : workers) worker.join();
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (!results[i].ok()) continue;
    RETURN_IF_ERROR(incumbent_.Merge(tasks[i].name, *results[i]));
    Remember(*results[i]);
  }
  return absl::OkStatus();
}

void Rounds::Remember(const Mapping& mapping) {
  const absl::StatusOr<double> score = incumbent_.ScoreOf(mapping);
  if (!score.ok()) return;
  const auto at = std::lower_bound(population_.begin(), population_.end(), *score,
                                   [](const Member& m, double s) { return m.score < s; });
  if (at != population_.end() && at->score == *score) return;  // most likely the same
  population_.insert(at, {*score, mapping});
  while (population_.size() > kPopulation ||
         population_.back().score > kWorthAParent * population_[0].score) {
    population_.pop_back();
  }
}

Rounds::Task Rounds::Named(const std::string& name, const Mapping& start, uint64_t seed,
                           uint32_t effort) const {
  return {name, [this, name, start, seed, effort]() -> absl::StatusOr<Mapping> {
            ASSIGN_OR_RETURN(const MappingAlgorithm* const algorithm, FindMappingAlgorithm(name));
            AlgorithmOptions options;
            options.seed = seed;
            options.threads = options_.threads;
            for (const AlgorithmParameter& parameter : algorithm->parameters) {
              const double value = parameter.name == "rounds" ? effort
                                   : parameter.name == "epochs" || parameter.name == "steps"
                                       ? std::ldexp(parameter.preset, static_cast<int>(effort) - 1)
                                       : parameter.preset;
              options.parameters.emplace_back(
                  parameter.name, std::clamp(value, parameter.least, parameter.greatest));
            }
            ASSIGN_OR_RETURN(Mapped mapped, algorithm->run(problem_, start, options, streaming_));
            return std::move(mapped.mapping);
          }};
}

// Ranks in the order of their numbers on the places of `order`.
Rounds::Task Rounds::Numbering(const std::string& name, std::vector<uint32_t> order) const {
  return {name, [this, order = std::move(order)]() -> absl::StatusOr<Mapping> {
            Mapping mapping;
            for (const uint32_t place : order) {
              const size_t room = problem_.rank_count() - mapping.size();
              mapping.insert(mapping.end(), std::min<size_t>(room, sparse_.capacities[place]),
                             PlaceIndex(place));
            }
            return mapping;
          }};
}

// The given numbering, on the places as they come, along the groups, and in the order of the
// fabric's endpoints, which on a grid is that of its coordinates.
std::vector<Rounds::Task> Rounds::Numberings() const {
  std::vector<uint32_t> by_endpoint(sparse_.capacities.size());
  std::iota(by_endpoint.begin(), by_endpoint.end(), 0);
  std::vector<Task> tasks = {Numbering("block", by_endpoint),
                             Numbering("numbers along the groups", sparse_.groups.order)};
  if (problem_.places->has_endpoints()) {
    std::sort(by_endpoint.begin(), by_endpoint.end(), [&](uint32_t a, uint32_t b) {
      return problem_.places->endpoint(PlaceIndex(a)) < problem_.places->endpoint(PlaceIndex(b));
    });
    tasks.push_back(Numbering("numbers along the fabric", std::move(by_endpoint)));
  }
  return tasks;
}

Rounds::Task Rounds::Polish(const Mapping& start, uint64_t seed) const {
  return {"local-search", [this, start, seed]() -> absl::StatusOr<Mapping> {
            Seats seats = PlacesOf(start);
            if (sparse_.HasLargePlaces()) {
              RefineOnAllLevels(sparse_, seed, nullptr, control_, seats);
            }
            SwapUntilLocalOptimum(sparse_, {seed}, control_, seats);
            return MappingOf(seats);
          }};
}

Rounds::Task Rounds::QuickMultisection(uint64_t seed, bool pack) const {
  return {"multisection", [this, seed, pack]() -> absl::StatusOr<Mapping> {
            MultisectionOptions options;
            options.seed = seed;
            options.pack = pack;
            // Few levels are cut with some care; many, as bisections have, are cut first.
            options.cycles = sparse_.HasLargePlaces() && sparse_.groups.exact ? 1 : 0;
            ASSIGN_OR_RETURN(Seats seats,
                             Multisect(sparse_.graph.links, sparse_.groups, options, control_));
            incumbent_.Stream(MappingOf(seats));
            if (sparse_.HasLargePlaces()) {
              ArrangeParts(sparse_, seed, control_, seats);
              RefineOnAllLevels(sparse_, seed, nullptr, control_, seats);
            }
            SwapUntilLocalOptimum(sparse_, {seed}, control_, seats);
            return MappingOf(seats);
          }};
}

// All places at once, and then the parts among them: where groups only approach the distances, the
// cut of many levels is no better for its trouble.
Rounds::Task Rounds::FlatPartition(uint64_t seed) const {
  return {"k-way partition", [this, seed]() -> absl::StatusOr<Mapping> {
            const PlaceGroups flat = GroupsOfLabels(*problem_.places, {});
            MultisectionOptions options;
            options.seed = seed;
            ASSIGN_OR_RETURN(Seats seats, Multisect(sparse_.graph.links, flat, options, control_));
            ArrangeParts(sparse_, seed, control_, seats);
            incumbent_.Stream(MappingOf(seats));
            RefineOnAllLevels(sparse_, seed, nullptr, control_, seats);
            SwapUntilLocalOptimum(sparse_, {seed}, control_, seats);
            return MappingOf(seats);
          }};
}

Rounds::Task Rounds::AnnealFrom(const Mapping& start, uint64_t seed, double proposals) const {
  return {"annealing", [this, start, seed, proposals]() -> absl::StatusOr<Mapping> {
            Seats seats = PlacesOf(start);
            Anneal(sparse_, {seed, kHot, proposals}, control_, seats);
            SwapUntilLocalOptimum(sparse_, {seed}, control_, seats);
            return MappingOf(seats);
          }};
}

Rounds::Task Rounds::AnnealMultisection(uint64_t seed, double proposals) const {
  return {"annealing of a multisection", [this, seed, proposals]() -> absl::StatusOr<Mapping> {
            MultisectionOptions options;
            options.seed = seed;
            options.pack = seed % 2 == 0;
            ASSIGN_OR_RETURN(Seats seats,
                             Multisect(sparse_.graph.links, sparse_.groups, options, control_));
            Anneal(sparse_, {seed, kHot, proposals}, control_, seats);
            SwapUntilLocalOptimum(sparse_, {seed}, control_, seats);
            return MappingOf(seats);
          }};
}

Rounds::Task Rounds::CarefulMultisection(uint64_t seed, uint32_t care) const {
  return {"careful multisection", [this, seed, care]() -> absl::StatusOr<Mapping> {
            MultisectionOptions options;
            options.seed = seed;
            options.tries = 2 + care;
            options.cycles = 1;
            options.combinations = 2 + 4 * care;
            ASSIGN_OR_RETURN(Seats seats,
                             Multisect(sparse_.graph.links, sparse_.groups, options, control_));
            ArrangeParts(sparse_, seed, control_, seats);
            Settle(seed, seats);
            return MappingOf(seats);
          }};
}

// Cycles over all levels for as long as they are worth it, then swaps.
void Rounds::Settle(uint64_t seed, Seats& seats) const {
  double first = 0;
  for (uint32_t cycle = 0; cycle < kSettlingCycles && !control_.stopped(); ++cycle) {
    const double gained = RefineOnAllLevels(sparse_, seed + cycle, nullptr, control_, seats);
    incumbent_.Stream(MappingOf(seats));
    first = std::max(first, gained);
    if (gained < kWorthACycle * first) break;
  }
  SwapUntilLocalOptimum(sparse_, {seed}, control_, seats);
}

Rounds::Task Rounds::Settling(const Mapping& start, uint64_t seed) const {
  return {"refinement", [this, start, seed]() -> absl::StatusOr<Mapping> {
            Seats seats = PlacesOf(start);
            Settle(seed, seats);
            return MappingOf(seats);
          }};
}

// Two of the population, the better one first, joined only where both agree.
Rounds::Task Rounds::Combination(uint64_t seed) const {
  Xoshiro random(seed);
  const auto count = static_cast<uint32_t>(population_.size());
  const uint32_t a = random.Below(count - 1), b = a + 1 + random.Below(count - 1 - a);
  return {"combination",
          [this, seed, seats = PlacesOf(population_[a].mapping),
           other = PlacesOf(population_[b].mapping)]() mutable -> absl::StatusOr<Mapping> {
            RefineOnAllLevels(sparse_, seed, &other, control_, seats);
            Settle(seed + 1, seats);
            return MappingOf(seats);
          }};
}

// What other files of the table know and take their start from nothing.
void Rounds::AddOthers(std::vector<Task>& tasks) const {
  if (problem_.rank_count() > kManyRanks) return;
  for (const char* name : {"rcm", "greedy", "recursive", "multicore", "cp-nsc"}) {
    tasks.push_back(Named(name, incumbent_.best(), options_.seed, 1));
  }
}

absl::Status Rounds::Begin() {
  const Mapping present = incumbent_.best();
  RETURN_IF_ERROR(RunAll(Numberings()));
  if (sparse_.HasLargePlaces() && !sparse_.groups.exact) {
    RETURN_IF_ERROR(RunAll({FlatPartition(options_.seed)}));
  }
  RETURN_IF_ERROR(RunAll({QuickMultisection(options_.seed, true)}));
  // The numbering of a program that was written with care is worth as much as a cut of its pattern.
  if (control_.stopped() || population_.empty()) return absl::OkStatus();
  const double best = incumbent_.score();
  std::vector<Task> polish;
  if (1.0 < 1.25 * best) polish.push_back(Polish(present, options_.seed));
  for (const Member& member : population_) {
    if (member.score > best && member.score < 1.25 * best && member.mapping != present) {
      polish.push_back(Polish(member.mapping, options_.seed));
    }
  }
  return RunAll(polish);
}

absl::Status Rounds::Round(uint32_t round) {
  const uint64_t seed = options_.seed * 1000003 + 2 * round + 2;
  std::vector<Task> tasks;
  if (round == 2) AddOthers(tasks);
  if (problem_.objective.congestion > 0) {
    tasks.push_back(Named("congestion", incumbent_.best(), seed, round + 1));
    const size_t other = population_.empty() ? 0 : round % population_.size();
    if (!population_.empty() && population_[other].mapping != incumbent_.best()) {
      tasks.push_back(Named("congestion", population_[other].mapping, seed + 1, round + 1));
    }
  }
  if (sparse_.HasLargePlaces()) {
    if (round == 0) {
      tasks.push_back(Settling(incumbent_.best(), seed));
    } else {
      if (!sparse_.groups.exact) tasks.push_back(FlatPartition(seed));
      tasks.push_back(CarefulMultisection(seed + 1, 1 + round / 4));
    }
    for (uint32_t i = 0; population_.size() > 1 && i < 2 * round; ++i) {
      tasks.push_back(Combination(seed * 64 + i));
    }
  } else {
    const double proposals = std::ldexp(kFirstProposals, static_cast<int>(std::min(round, 16U)));
    tasks.push_back(AnnealFrom(incumbent_.best(), seed, proposals));
    tasks.push_back(AnnealMultisection(seed + 1, proposals));
  }
  if (IsDense() && round >= kFirstDenseRound) {
    tasks.push_back(Named(round % 2 == 0 ? "memetic" : "robust-tabu", incumbent_.best(), seed,
                          1 + (round - kFirstDenseRound) / 2));
  }
  return RunAll(tasks);
}

}  // namespace coppice
