#include "daemon/mapping/search/dense/dense_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search_control.h"

namespace coppice {
namespace {

// A swap that costs more than this many times the temperature is hopeless: e^-10 = 1 in 22,000.
constexpr double kHopeless = 10;

// Two different ranks.
std::pair<uint32_t, uint32_t> RandomPair(uint32_t size, Xoshiro& random) {
  const uint32_t r = random.Below(size);
  return {r, (r + 1 + random.Below(size - 1)) % size};
}

// Of the cost, by swaps of random pairs.
double MeanChange(const DenseState& state, Xoshiro& random) {
  constexpr uint32_t kSwaps = 1000;
  double mean = 0;
  for (uint32_t i = 0; i < kSwaps; ++i) {
    const auto [r, s] = RandomPair(state.size(), random);
    mean += std::abs(state.Delta(r, s)) / kSwaps;
  }
  return mean;
}

constexpr int64_t kTermFactor = 8;        // of n: the longest time on the list
constexpr int64_t kAspirationFactor = 5;  // of n^2: what "very long" is
// The updates of broken or very large numbers add up their rounding: costs are counted anew.
constexpr int64_t kStepsPerRecount = 10'000;
// A kick is a tenth to a third of n random swaps: on tai60a and tai100a a twentieth falls back to
// where it was, and a half forgets too much.
constexpr uint32_t kMinKick = 10, kKickRange = 4;
constexpr int64_t kStepsPerReport = 256;

// A child that costs what another does is most likely the same: it is changed by swaps until chance
// says stop, four on average, so that a population of twins looks near and far.
constexpr double kTwinMutation = 0.8;

// A child of two of the bests for each population, its cost not yet known.
std::vector<DenseSolution> Offspring(const std::vector<DenseSolution>& bests, double mutation,
                                     Xoshiro& random) {
  const auto count = static_cast<uint32_t>(bests.size());
  std::vector<DenseSolution> children(count);
  for (DenseSolution& child : children) {
    const uint32_t father = random.Below(count), mother = random.Below(count);
    child.order = UniformCrossover(bests[mother].order, bests[father].order, random);
    Mutate(child.order, mutation, random);
  }
  return children;
}

// What comes to each population from the one before it, the first one's from another process.
absl::StatusOr<std::vector<DenseSolution>> FromTheRing(std::vector<DenseSolution> bests,
                                                       SearchTeam& team) {
  std::rotate(bests.begin(), bests.end() - 1, bests.end());
  RETURN_IF_ERROR(team.PassOn(bests.front()));
  return bests;
}

// What the master in process 0 hands out; whoever gets a child counts its cost.
absl::StatusOr<std::vector<DenseSolution>> FromTheMaster(const std::vector<DenseSolution>& bests,
                                                         const DenseEvolution& evolution,
                                                         const DenseQap& qap, Xoshiro& random,
                                                         SearchTeam& team) {
  const auto count = static_cast<uint32_t>(bests.size());
  ASSIGN_OR_RETURN(const std::vector<DenseSolution> all, team.Gather(bests));
  ASSIGN_OR_RETURN(std::vector<DenseSolution> children,
                   team.Scatter(Offspring(all, evolution.mutation, random), count));
  RunLogicalWorkers(evolution.threads, count,
                    [&](uint32_t i) { children[i].cost = qap.Cost(children[i].order); });
  return children;
}

}  // namespace

inline void DenseAnnealer::Consider(DenseState& state, uint32_t r, uint32_t s, double delta,
                                    double temperature, Xoshiro& random) {
  if (delta > 0 && random.Unit() >= std::exp(-delta / temperature)) return;
  // A swap that changes nothing is taken every other time: slots of one place are full of them.
  if (delta == 0 && (random() & 1) != 0) return;
  state.Swap(r, s, delta);
  paid_ += delta > 0;
}

bool DenseAnnealer::Scan(DenseState& state, absl::Span<const uint32_t> free, double temperature,
                         Xoshiro& random, const SearchControl& control) {
  hopeful_.clear();
  for (size_t i = 1; i < free.size(); ++i) {
    if (control.stopped()) return false;
    for (size_t j = 0; j < i; ++j) {
      const double delta = state.Delta(free[i], free[j]);
      if (delta >= kHopeless * temperature) continue;
      hopeful_.emplace_back(static_cast<uint16_t>(free[i]), static_cast<uint16_t>(free[j]));
      Consider(state, free[i], free[j], delta, temperature, random);
    }
  }
  return true;
}

bool DenseAnnealer::Run(DenseState& state, absl::Span<const uint32_t> free, double from, double to,
                        uint32_t sweeps, Xoshiro& random, const SearchControl& control) {
  const double ratio = sweeps > 1 ? std::pow(to / from, 1.0 / (sweeps - 1)) : 1;
  const uint64_t pairs = static_cast<uint64_t>(free.size()) * free.size() / 2;
  double temperature = from;
  uint32_t since_scan = kSweepsPerScan;
  for (uint32_t sweep = 0; sweep < sweeps; ++sweep, temperature *= ratio) {
    if (control.stopped()) return false;
    paid_ = 0;
    if (since_scan >= kSweepsPerScan) {
      if (!Scan(state, free, temperature, random, control)) return false;
      since_scan = hopeful_.size() * 4 > pairs ? kSweepsPerScan : 0;
      continue;
    }
    ++since_scan;
    for (const auto& [r, s] : hopeful_) {
      const double delta = state.Delta(r, s);
      if (delta < kHopeless * temperature) Consider(state, r, s, delta, temperature, random);
    }
  }
  return true;
}

DenseTemperatures MeasureTemperatures(DenseState& state, Xoshiro& random,
                                      const SearchControl& control) {
  constexpr double kRange = 1e-5;  // the last temperature against the first
  const DenseQap& qap = state.qap();
  const double pairs = 0.5 * qap.size() * (qap.size() - 1);
  const auto steps = static_cast<uint32_t>(std::clamp(2e7 / pairs, 40.0, 200.0));
  const double highest = MeanChange(state, random);
  DenseTemperatures temperatures{highest, highest, highest};
  if (highest == 0) return {1, 1, 1};

  const std::vector<uint32_t> all = Numbers(qap.size());
  DenseAnnealer annealer;
  const double ratio = std::pow(kRange, 1.0 / (steps - 1));
  double temperature = highest;
  for (uint32_t step = 0; step < steps; ++step, temperature *= ratio) {
    if (!annealer.Run(state, all, temperature, temperature, 1, random, control)) break;
    const double share = static_cast<double>(annealer.paid_) / pairs;
    if (share > 0.1) temperatures.start = temperature;
    if (share > 0.01) temperatures.middle = temperature;
    if (share > 2e-4) temperatures.end = temperature;
  }
  return temperatures;
}

double DenseSchedule::Temperature(uint64_t iteration) const {
  const double share = static_cast<double>(iteration) / static_cast<double>(iterations);
  if (!cauchy) return first * std::pow(last / first, share);
  return first / (1 + share * (first / last - 1));
}

DenseSchedule MeasuredSchedule(const DenseQap& qap, uint64_t seed) {
  Xoshiro random(seed);
  const double mean = MeanChange(DenseState(qap, RandomDenseOrder(qap.size(), random)), random);
  DenseSchedule schedule;
  if (mean > 0) {
    schedule.first = mean;
    schedule.last = mean / 1000;
  }
  return schedule;
}

DenseSolution RunChain(DenseState& state, const DenseSchedule& schedule, uint64_t from, uint64_t to,
                       Xoshiro& random, const SearchControl& control) {
  DenseSolution best{state.order(), state.cost()};
  for (uint64_t iteration = from; iteration < to; ++iteration) {
    if (control.stopped()) break;
    const double temperature = schedule.Temperature(iteration);
    for (uint32_t i = 0; i < schedule.candidates; ++i) {
      const auto [r, s] = RandomPair(state.size(), random);
      const double delta = state.Delta(r, s);
      if (delta > 0 && random.Unit() >= std::exp(-delta / temperature)) continue;
      state.Swap(r, s, delta);
      if (state.cost() < best.cost) best = {state.order(), state.cost()};
    }
  }
  return best;
}

DenseTabu::DenseTabu(const DenseQap& qap, DenseOrder order, uint64_t seed)
    : state_(qap, std::move(order)),
      random_(seed),
      best_{state_.order(), state_.cost()},
      since_kick_(state_.cost()),
      costs_(Row(qap.size()) + qap.size()),
      free_from_(static_cast<size_t>(qap.size()) * qap.size()),
      u_(qap.size()),
      v_(qap.size()) {
  if (!qap.symmetric()) u_transposed_ = v_transposed_ = u_;
  // All pairs become forgotten at different steps.
  for (size_t i = 0; i < free_from_.size(); ++i) free_from_[i] = -static_cast<int64_t>(i);
}

int64_t DenseTabu::Term() {
  const double x = random_.Unit();
  return static_cast<int64_t>(x * x * x * static_cast<double>(kTermFactor * state_.size()));
}

bool DenseTabu::Taboo(uint32_t r, uint32_t s) {
  return FreeFrom(r, state_.order()[s]) >= step_ && FreeFrom(s, state_.order()[r]) >= step_;
}

DenseTabu::Move DenseTabu::Forgotten(uint32_t rank) {
  const int64_t size = state_.size(), long_ago = step_ - kAspirationFactor * size * size;
  Move move;
  for (uint32_t other = 0; other < state_.size(); ++other) {
    if (other == rank || (FreeFrom(rank, state_.order()[other]) >= long_ago &&
                          FreeFrom(other, state_.order()[rank]) >= long_ago)) {
      continue;
    }
    const double cost = CostOf(rank, other);
    if (!move.found || cost < move.cost) move = {rank, other, cost, true};
  }
  return move;
}

DenseTabu::Move DenseTabu::Cheapest() {
  Move move;
  double bound = std::numeric_limits<double>::infinity();
  const double to_best = best_.cost - state_.cost();
  for (uint32_t r = 1; r < state_.size(); ++r) {
    const double* const row = &costs_[Row(r)];
    for (size_t at = kernels_.first_below(row, 0, r, bound); at < r;
         at = kernels_.first_below(row, at + 1, r, bound)) {
      const auto s = static_cast<uint32_t>(at);
      if (Taboo(r, s) && row[s] >= to_best) continue;
      move = {r, s, row[s], true};
      bound = row[s];
    }
  }
  return move;
}

void DenseTabu::Make(const Move& move) {
  const uint32_t r = move.r, s = move.s;
  FreeFrom(r, state_.order()[r]) = step_ + Term();
  FreeFrom(s, state_.order()[s]) = step_ + Term();
  state_.Swap(r, s, move.cost);
  UpdateCosts(r, s);
  if (state_.cost() < best_.cost) best_ = {state_.order(), state_.cost()};
  if (state_.cost() < since_kick_) {
    since_kick_ = state_.cost();
    improved_step_ = step_;
  }
}

void DenseTabu::Kick(const SearchControl& control) {
  const uint32_t size = state_.size();
  DenseOrder order = best_.order;
  const uint32_t least = std::max(2u, size / kMinKick);
  for (uint32_t left = least + random_.Below(std::max(1u, size / kKickRange)); left > 0; --left) {
    std::swap(order[random_.Below(size)], order[random_.Below(size)]);
  }
  state_.Reset(std::move(order));
  CountCosts(control);
  since_kick_ = state_.cost();
  improved_step_ = step_;
}

bool DenseTabu::CountCosts(const SearchControl& control) {
  counted_ = false;
  for (uint32_t r = 1; r < state_.size(); ++r) {
    if (control.stopped()) return false;
    for (uint32_t s = 0; s < r; ++s) CostOf(r, s) = state_.Delta(r, s);
  }
  counted_ = true;
  return true;
}

void DenseTabu::UpdateCosts(uint32_t r, uint32_t s) {
  const bool symmetric = state_.qap().symmetric();
  const double passes = symmetric ? 2 : 1;
  state_.Differences(r, s, false, u_.data(), v_.data());
  for (double& value : u_) value *= passes;
  for (uint32_t i = 1; i < state_.size(); ++i) {
    kernels_.update_row(&costs_[Row(i)], u_.data(), v_.data(), u_[i], v_[i], i);
  }
  if (!symmetric) {
    state_.Differences(r, s, true, u_transposed_.data(), v_transposed_.data());
    for (uint32_t i = 1; i < state_.size(); ++i) {
      kernels_.update_row(&costs_[Row(i)], u_transposed_.data(), v_transposed_.data(),
                          u_transposed_[i], v_transposed_[i], i);
    }
  }
  for (uint32_t k = 0; k < state_.size(); ++k) {
    if (k != r) CostOf(r, k) = state_.Delta(r, k);
    if (k != s) CostOf(s, k) = state_.Delta(s, k);
  }
}

void DenseTabu::Run(uint64_t steps, const SearchControl& control, DenseBest& best) {
  if (state_.size() < 2) return;
  const int64_t size = state_.size(), patience = size * size;
  double reported = std::numeric_limits<double>::infinity();
  for (uint64_t done = 0; done < steps; ++done) {
    if (control.stopped() || (!counted_ && !CountCosts(control))) break;
    ++step_;
    Move move = Forgotten(static_cast<uint32_t>(step_ % state_.size()));
    if (!move.found) move = Cheapest();
    if (move.found) Make(move);
    if (step_ % kStepsPerRecount == 0 && state_.qap().element() >= DenseElement::kInt32) {
      CountCosts(control);
    }
    if (step_ - improved_step_ > patience) Kick(control);
    if (step_ % kStepsPerReport == 0 && best_.cost < reported) {
      best.Report(best_.order, best_.cost);
      reported = best_.cost;
    }
  }
  best.Report(best_.order, best_.cost);
}

DenseOrder UniformCrossover(const DenseOrder& a, const DenseOrder& b, Xoshiro& random) {
  const auto size = static_cast<uint32_t>(a.size());
  std::vector<bool> taken(size);
  DenseOrder child(size, size);
  const auto take = [&](uint32_t rank, uint32_t slot) {
    if (child[rank] < size || taken[slot]) return;
    child[rank] = slot;
    taken[slot] = true;
  };
  for (uint32_t rank = 0; rank < size; ++rank) {
    if (a[rank] == b[rank]) take(rank, a[rank]);
  }
  for (const uint32_t rank : RandomDenseOrder(size, random)) {
    const bool first = (random() & 1) != 0;
    take(rank, first ? a[rank] : b[rank]);
    take(rank, first ? b[rank] : a[rank]);
  }
  const DenseOrder slots = RandomDenseOrder(size, random);
  auto next = slots.begin();
  for (uint32_t rank = 0; rank < size; ++rank) {
    while (child[rank] == size) take(rank, *next++);
  }
  return child;
}

void Mutate(DenseOrder& order, double mutation, Xoshiro& random) {
  const auto size = static_cast<uint32_t>(order.size());
  while (random.Unit() < mutation) std::swap(order[random.Below(size)], order[random.Below(size)]);
}

void DenseGenetic::Add(DenseOrder order) {
  const double cost = qap_.Cost(order);
  population_.push_back({std::move(order), cost});
}

bool IsKnown(absl::Span<const DenseSolution> population, double cost) {
  return absl::c_any_of(population,
                        [&](const DenseSolution& solution) { return solution.cost == cost; });
}

void ReplaceDearest(const DenseSolution& immigrant, std::vector<DenseSolution>& population) {
  const auto dearest = absl::c_max_element(population);
  if (immigrant < *dearest) *dearest = immigrant;
}

const DenseSolution& DenseGenetic::Choose() {
  const auto size = static_cast<uint32_t>(population_.size());
  const DenseSolution &a = population_[random_.Below(size)], &b = population_[random_.Below(size)];
  return b < a ? b : a;
}

void DenseGenetic::Breed(const SearchControl& control) {
  std::vector<DenseSolution> children;
  for (size_t child = 0; child < population_.size() / 2 && !control.stopped(); ++child) {
    const DenseSolution &mother = Choose(), &father = Choose();
    DenseOrder order = UniformCrossover(mother.order, father.order, random_);
    Mutate(order, mutation_, random_);
    double cost = qap_.Cost(order);
    if (IsKnown(population_, cost)) {
      Mutate(order, kTwinMutation, random_);
      cost = qap_.Cost(order);
    }
    children.push_back({std::move(order), cost});
  }
  absl::c_stable_sort(population_);
  std::move(children.begin(), children.end(),
            population_.end() - static_cast<std::ptrdiff_t>(children.size()));
}

absl::StatusOr<DenseSolution> Evolve(std::vector<DenseGenetic>& populations,
                                     const DenseEvolution& evolution, const DenseQap& qap,
                                     const SearchControl& control, DenseBest& reported) {
  const auto count = static_cast<uint32_t>(populations.size());
  SearchTeam& team = control.team();
  Xoshiro master(WorkerSeed(evolution.seed, 3, 0));
  std::vector<DenseSolution> bests(count);
  const auto collect = [&] {
    for (uint32_t i = 0; i < count; ++i) {
      bests[i] = populations[i].best();
      reported.Report(bests[i].order, bests[i].cost);
    }
  };
  collect();
  for (uint64_t generation = 0; generation < evolution.generations; ++generation) {
    ASSIGN_OR_RETURN(const bool stopped, team.Any(control.stopped()));
    if (stopped) break;
    RunLogicalWorkers(evolution.threads, count, [&](uint32_t i) { populations[i].Breed(control); });
    collect();
    ASSIGN_OR_RETURN(const std::vector<DenseSolution> immigrants,
                     evolution.has_master ? FromTheMaster(bests, evolution, qap, master, team)
                                          : FromTheRing(bests, team));
    for (uint32_t i = 0; i < count; ++i) populations[i].Receive(immigrants[i]);
  }
  collect();
  DenseSolution best = *absl::c_min_element(bests);
  RETURN_IF_ERROR(team.ShareBest(best));
  return best;
}

}  // namespace coppice
