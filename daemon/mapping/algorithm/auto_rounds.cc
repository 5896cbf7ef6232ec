#include "daemon/mapping/algorithm/auto_rounds.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>
#include <variant>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search_control.h"

namespace coppice {
namespace {

// Of a rank in the first round of annealing. Where groups only approach the distances, that round
// already gains; where they say all, the first rounds cut again with more tries.
constexpr double kFirstProposals = 30, kFirstProposalsInexact = 120;
constexpr uint32_t kCuttingRounds = 2;
// Times the best cost: whose first few swaps come down to it is worth the others.
constexpr double kWorthSwapping = 1.03;
constexpr uint32_t kMaxDoublings = 16;
constexpr size_t kPopulation = 8;
constexpr double kWorthAParent = 1.1;   // times the best score: who is worse is forgotten
constexpr uint32_t kManyRanks = 20000;  // beyond, the quadratic algorithms of other files wait
// A pattern of which more than one in so many of all pairs communicates is dense: the price of a
// swap as a dense method counts it, some 0.05 ns for each slot, is less than that of two ranks'
// exchanges.
constexpr double kDensePart = 12;
constexpr uint32_t kFirstDenseRound = 3;  // after what takes milliseconds
constexpr uint32_t kEqualTurns = 3;       // of every way, before the best of them is preferred
constexpr uint32_t kStaleRounds = 2;      // without gain: then all are equal again
// A search over channels is made ready in some so many times of a measure.
constexpr double kScoresOfCongestion = 40;
constexpr uint32_t kCapacityCuts = 4;
// Of what is tried after rounds without gain.
constexpr uint32_t kFewSlots = 512, kMaxStaleTurns = 5;
constexpr uint32_t kStaleHeats = 12;  // annealings for each turn

// Of the memetic search, turn after turn: about four times the work of the one before, until it is
// as large as its presets make it.
struct MemeticTurn {
  double population, sweeps, epochs;
};
MemeticTurn MemeticOf(uint32_t turn) {
  constexpr std::array<MemeticTurn, 4> kFirst = {
      MemeticTurn{4, 30, 1}, {8, 60, 1}, {16, 120, 1}, {32, 300, 1}};
  if (turn < kFirst.size()) return kFirst[turn];
  return {0, 300, std::ldexp(1, static_cast<int>(std::min(turn - 4, kMaxDoublings)))};
}

// Steps that take about as long.
double TabuStepsOf(uint32_t turn) {
  const uint32_t doublings = turn < 4 ? 2 * turn : turn + 4;
  return std::ldexp(8000, static_cast<int>(std::min(doublings, 2 * kMaxDoublings)));
}

// Annealings of the bytes on channels: after twelve without gain each is twice as long.
double HeatsOf(uint32_t round) { return round < 2 ? 3 * (round + 1) : 12 * (round - 1); }

}  // namespace

AutoRounds::AutoRounds(const MappingProblem& problem, const SparseProblem& sparse,
                       const AlgorithmOptions& options, const SearchControl& control,
                       Incumbent& incumbent)
    : problem_(problem),
      options_(options),
      control_(control),
      incumbent_(incumbent),
      make_(problem, sparse),
      large_places_(sparse.HasLargePlaces()),
      exact_groups_(sparse.groups.exact),
      dense_(IsDense()),
      lines_(problem, options, control, incumbent),
      ways_{Way{{"annealing", "annealing of a multisection"}}, Way{{"memetic"}},
            Way{{"robust-tabu"}}} {}

bool AutoRounds::CostMatters() const {
  return problem_.objective.hop_bytes > 0 || problem_.objective.qap_cost > 0;
}

bool AutoRounds::IsDense() const {
  const double slots = problem_.places->slot_count();
  if (slots > kPortfolioDenseSlots || large_places_ || !CostMatters()) return false;
  const auto pairs = static_cast<double>(problem_.pattern->pair_count());
  return kDensePart * pairs > slots * (slots - 1) / 2;
}

void AutoRounds::RunAll(const Tasks& tasks) {
  const auto count = static_cast<uint32_t>(tasks.size());
  if (count == 0) return;
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (const PortfolioTask& task : tasks) {
    attempts.push_back(std::make_unique<Attempt>(incumbent_, task.keeps_offers));
  }
  std::atomic<uint32_t> proven = count;  // the first task that has come to the best there is
  const uint32_t threads = lines_.threads_left();
  RunLogicalWorkers(threads, count, [&](uint32_t i) {
    const auto stopped = [&, i] {
      return proven < i || (lines_.proven() && !refines_equals_) || control_.stopped();
    };
    if (stopped()) return;
    Attempt& attempt = *attempts[i];
    const auto offered = [&](const Mapping& mapping) { attempt.Offer(mapping); };
    SearchControl::Remaining remaining;
    if (control_.has_deadline()) remaining = [this] { return control_.remaining(); };
    absl::StatusOr<Mapping> mapping = tasks[i].run(std::max(1U, threads / std::min(threads, count)),
                                                   SearchControl(stopped, offered, remaining));
    if (mapping.ok()) attempt.Finish(*std::move(mapping));
    if (refines_equals_ || !incumbent_.Proven(attempt.best().score)) return;
    for (uint32_t first = proven; i < first && !proven.compare_exchange_weak(first, i);) {
    }
  });
  for (uint32_t i = 0; i < count; ++i) {
    if (attempts[i]->best().mapping.empty()) continue;
    incumbent_.Merge(tasks[i].name, attempts[i]->best());
    Remember(attempts[i]->best());
    if (proven == i) break;
  }
  lines_.Merge();
}

void AutoRounds::Remember(const ScoredMapping& found) {
  const auto keys = [](const MappingStanding& s) {
    return std::tie(s.score, s.smooth, s.hop_bytes);
  };
  const auto at = std::lower_bound(
      population_.begin(), population_.end(), found,
      [&](const ScoredMapping& a, const ScoredMapping& b) { return keys(a) < keys(b); });
  if (at != population_.end() && keys(*at) == keys(found)) return;  // most likely the same
  population_.insert(at, found);
  while (population_.size() > kPopulation ||
         population_.back().score > kWorthAParent * population_[0].score) {
    population_.pop_back();
  }
}

bool AutoRounds::SearchesLines() const {
  return problem_.objective.congestion > 0 && problem_.rank_count() <= kManyRanks &&
         incumbent_.TimeForScores(kScoresOfCongestion);
}

void AutoRounds::Begin() {
  const Mapping present = incumbent_.best();
  RunAll(make_.Numberings());
  const bool congestion = problem_.objective.congestion > 0 && problem_.rank_count() <= kManyRanks;
  const bool lines = SearchesLines();
  Tasks quick;
  if (large_places_ && !exact_groups_) quick.push_back(make_.FlatPartition(options_.seed));
  quick.push_back(make_.QuickMultisection(options_.seed, true));
  if (congestion) quick.push_back(make_.Named("rcm", present, options_.seed, {}));
  if (lines) {
    lines_.Start();
    lines_.AddTo(quick, {});
  }
  if (congestion && (!lines || CostMatters())) {
    for (const char* name : {"recursive", "multicore", "greedy"}) {
      quick.push_back(make_.Named(name, present, options_.seed, {}));
    }
    for (uint32_t cut = 0; cut < kCapacityCuts; ++cut) {
      quick.push_back(make_.Named("congestion", present, options_.seed + cut,
                                  {{"rounds", 0}, {"starts", 0}, {"cuts", 1}}));
    }
  }
  RunAll(quick);
  // The numbering of a program that was written with care is worth as much as a cut of its pattern.
  if (control_.stopped() || incumbent_.Proven(incumbent_.score())) return;
  const double best = incumbent_.score();
  const double worth = problem_.objective.congestion > 0
                           ? std::numeric_limits<double>::infinity()
                           : kWorthSwapping * make_.CostOf(incumbent_.best());
  Tasks polish;
  if (1.0 < 1.25 * best) polish.push_back(make_.Polish(present, options_.seed, worth));
  for (const ScoredMapping& member : population_) {
    if (member.score > best && member.score < 1.25 * best && member.mapping != present) {
      polish.push_back(make_.Polish(member.mapping, options_.seed, worth));
    }
  }
  RunAll(polish);
}

// From the best, and from another of the best: what helps the one is a dead end for the other.
void AutoRounds::AddCongestion(uint32_t round, uint64_t seed, Tasks& tasks) {
  if (SearchesLines()) return lines_.AddTo(tasks, population_);
  if (!incumbent_.TimeForScores(kScoresOfCongestion)) return;
  const PortfolioTasks::Parameters parameters = {
      {"rounds", HeatsOf(round)}, {"starts", 0}, {"cuts", 0}};
  tasks.push_back(make_.Named("congestion", incumbent_.best(), seed, parameters));
  if (population_.empty()) return;
  const Mapping& other = population_[round % population_.size()].mapping;
  if (other != incumbent_.best()) {
    tasks.push_back(make_.Named("congestion", other, seed + 1, parameters));
  }
}

void AutoRounds::AddForLargePlaces(uint32_t round, uint64_t seed, Tasks& tasks) const {
  if (round == 0) {
    tasks.push_back(make_.Settling(incumbent_.best(), seed));
  } else {
    if (!exact_groups_) tasks.push_back(make_.FlatPartition(seed));
    tasks.push_back(make_.CarefulMultisection(seed + 1, 1 + round / 4));
  }
  const auto count = static_cast<uint32_t>(population_.size());
  for (uint32_t i = 0; count > 1 && i < 2 * std::min(round, kMaxDoublings); ++i) {
    Xoshiro random(seed * 64 + i);
    const uint32_t a = random.Below(count - 1), b = a + 1 + random.Below(count - 1 - a);
    tasks.push_back(
        make_.Combination(population_[a].mapping, population_[b].mapping, seed * 64 + i));
  }
}

void AutoRounds::AddAnnealing(uint32_t round, uint64_t seed, Tasks& tasks) const {
  if (exact_groups_ && (CostMatters() || refines_equals_) && round < kCuttingRounds) {
    tasks.push_back(make_.SwappedMultisection(seed, 2 * (round + 1)));
    tasks.push_back(make_.SwappedMultisection(seed + 1, 2 * (round + 1)));
    return;
  }
  const double proposals = std::ldexp(exact_groups_ ? kFirstProposals : kFirstProposalsInexact,
                                      static_cast<int>(std::min(round, kMaxDoublings)));
  tasks.push_back(make_.AnnealFrom(incumbent_.best(), seed, proposals));
  tasks.push_back(make_.AnnealMultisection(seed + 1, proposals));
}

// What other files of the table know, once: they end by themselves, and soon.
void AutoRounds::AddOthers(Tasks& tasks) {
  others_ran_ = true;
  if (problem_.rank_count() > kManyRanks) return;
  for (const char* name : {"multisection", "cp-nsc", "hierarchical-clustering", "pair-exchange"}) {
    tasks.push_back(make_.Named(name, incumbent_.best(), options_.seed, {}));
  }
  if (problem_.objective.congestion > 0) {
    tasks.push_back(make_.Named("threshold-accepting", incumbent_.best(), options_.seed, {}));
    return;  // the others have been there from the beginning
  }
  for (const char* name : {"rcm", "greedy", "recursive", "multicore"}) {
    tasks.push_back(make_.Named(name, incumbent_.best(), options_.seed, {}));
  }
}

bool AutoRounds::Turn(uint32_t way, uint32_t round) {
  const auto leads = [&](const Way& w) {
    return std::find(w.names.begin(), w.names.end(), incumbent_.winner()) != w.names.end();
  };
  const bool known = std::any_of(ways_.begin(), ways_.end(), leads);
  const bool waits = known && !leads(ways_[way]) && stale_rounds_ < kStaleRounds && round % 3 != 0;
  if (ways_[way].turns >= kEqualTurns && waits) return false;
  ++ways_[way].turns;
  return true;
}

void AutoRounds::AddDense(uint32_t round, uint64_t seed, Tasks& tasks) {
  if (Turn(0, round)) AddAnnealing(ways_[0].turns - 1, seed, tasks);
  if (round < kFirstDenseRound) return;
  if (Turn(1, round)) {
    const MemeticTurn turn = MemeticOf(ways_[1].turns - 1);
    tasks.push_back(make_.Named(
        "memetic", incumbent_.best(), seed + 2,
        {{"population", turn.population}, {"sweeps", turn.sweeps}, {"epochs", turn.epochs}}));
  }
  if (Turn(2, round)) {
    tasks.push_back(make_.Named("robust-tabu", incumbent_.best(), seed + 3,
                                {{"steps", TabuStepsOf(ways_[2].turns - 1)}}));
  }
}

bool AutoRounds::OnFabric() const {
  return problem_.snapshot != nullptr && problem_.places->has_endpoints();
}

void AutoRounds::CountStale() {
  stale_rounds_ = incumbent_.score() < last_score_ ? 0 : stale_rounds_ + 1;
  last_score_ = incumbent_.score();
}

void AutoRounds::AddForStale(uint64_t seed, Tasks& tasks) {
  const uint32_t turn = std::min(stale_turns_++, kMaxStaleTurns);
  if (OnFabric() && problem_.objective.congestion == 0) {
    tasks.push_back(make_.Named("congestion", incumbent_.best(), seed + 4,
                                {{"rounds", kStaleHeats * (turn + 1)},
                                 {"starts", turn == 0 ? 1 : 0},
                                 {"cuts", turn == 0 ? kCapacityCuts : 0}}));
  }
  if (dense_) return;  // has them anyway
  const MemeticTurn memetic = MemeticOf(turn);
  tasks.push_back(make_.Named("memetic", incumbent_.best(), seed + 2,
                              {{"population", memetic.population},
                               {"sweeps", memetic.sweeps},
                               {"epochs", memetic.epochs}}));
  tasks.push_back(
      make_.Named("robust-tabu", incumbent_.best(), seed + 3, {{"steps", TabuStepsOf(turn)}}));
}

void AutoRounds::Round(uint32_t round) {
  CountStale();
  const uint64_t seed = options_.seed * 1000003 + 2 * uint64_t{round} + 2;
  Tasks tasks;
  if (problem_.objective.congestion > 0) AddCongestion(round, seed, tasks);
  // Where congestion is all that counts, hop-bytes lead to a start now and then: but while the
  // search for it gains, the time is its own.
  const bool gains =
      !tasks.empty() && !CostMatters() && control_.has_deadline() && !lines_.converged();
  if (round >= 2 && !others_ran_ && !gains) AddOthers(tasks);
  if (CostMatters() || (round % 3 == 0 && !gains) || tasks.empty()) AddByCost(round, seed, tasks);
  const bool is_stale = stale_rounds_ > 0 && round >= kFirstDenseRound;
  if (is_stale && CostMatters() && problem_.places->slot_count() <= kFewSlots) {
    AddForStale(seed, tasks);
  }
  RunAll(tasks);
}

void AutoRounds::AddByCost(uint32_t round, uint64_t seed, Tasks& tasks) {
  if (large_places_) {
    AddForLargePlaces(round, seed, tasks);
  } else if (dense_) {
    AddDense(round, seed, tasks);
  } else {
    AddAnnealing(round, seed, tasks);
  }
}

void AutoRounds::RefineEquals() {
  lines_.RefineEquals();
  refines_equals_ = true;
}

void AutoRounds::RoundOfEquals(uint32_t round, uint64_t seed) {
  Tasks tasks;
  if (SearchesLines()) lines_.AddTo(tasks, population_);
  // The first numbering may have been as good as proven: then nobody has cut anything yet.
  if (round == 0) tasks.push_back(make_.QuickMultisection(seed, true));
  AddByCost(round, seed, tasks);
  RunAll(tasks);
}

}  // namespace coppice
