#include "daemon/mapping/algorithm/auto.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/search/links/congestion_bound.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {
namespace {

constexpr uint32_t kRoundsWithoutDeadline = 12;
constexpr uint32_t kStaleRoundsOfEquals = 4;
constexpr uint32_t kCostBoundRound = 4;     // of the cost: after what takes milliseconds
constexpr double kScoresOfBound = 20;       // for a bound there must be time for so many measures
constexpr double kShareOfExhaustive = 0.3;  // of the time that is left
constexpr double kShareOfProof = 0.4;       // of the time that is left, each time
constexpr double kShareOfProofAlone = 0.1;  // with one thread, which is the search's, too
constexpr uint32_t kProofs = 3;             // tries at most for one score
constexpr uint64_t kProofNodes = 1 << 12;   // of the first; then four times as many each time

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
// A pattern of which more than one in so many of all pairs communicates is dense: a swap costs less
// as a dense method counts it, some 0.05 ns for each slot.
constexpr double kDensePart = 12;
constexpr uint32_t kFirstDenseRound = 3;  // after what takes milliseconds
constexpr uint32_t kEqualTurns = 3;       // of every way, before the best of them is preferred
constexpr uint32_t kStaleRounds = 2;      // without gain: then all are equal again
// A search over channels is made ready in some so many times of a measure.
constexpr double kScoresOfCongestion = 40;
constexpr uint32_t kCapacityCuts = 4;
// Of what is tried after rounds without gain.
constexpr uint32_t kFewDenseSlots = 512, kMaxStaleTurns = 5;
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

// Ranks that talk to themselves alone: the heaviest belongs where that costs least.
Mapping HeaviestWhereLeast(const MappingProblem& problem) {
  const std::vector<uint32_t> ranks = NumbersBy(
      problem.rank_count(), [&](uint32_t rank) { return -problem.pattern->self_bytes(rank); });
  const std::vector<uint32_t> slots = NumbersBy(problem.places->slot_count(), [&](uint32_t slot) {
    const PlaceIndex p = problem.places->place_of_slot(slot);
    return (*problem.distances)(p, p);
  });
  Mapping mapping(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i)
    mapping[ranks[i]] = problem.places->place_of_slot(slots[i]);
  return mapping;
}

// The answer where no search is needed.
std::optional<Mapped> WithoutSearch(const MappingProblem& problem) {
  if (problem.pattern->pair_count() > 0) return std::nullopt;
  if (problem.pattern->has_self_bytes() && problem.objective.qap_cost > 0 &&
      HasSelfDistances(*problem.distances)) {
    return Mapped{
        HeaviestWhereLeast(problem),
        "ranks talk to themselves alone: it is the optimum, the heaviest where that costs "
        "least"};
  }
  if (problem.rank_count() == 1) {
    return Mapped{problem.present(),
                  "the pattern has one rank, which talks to nobody: the present order"};
  }
  return Mapped{problem.present(), "no two ranks exchange anything: the present order"};
}

// One of the ways of a dense problem. Whichever found the last improvement gets all rounds, the
// others every third, as long as there are improvements; what each does grows with its own turns.
struct DenseWay {
  std::vector<const char*> names;  // of its tasks
  uint32_t turns = 0;
};

// Rounds of tasks that run side by side and are merged in their order.
class Portfolio final {
 public:
  Portfolio(const MappingProblem& problem, const SparseProblem& sparse,
            const MethodOptions& options, const SearchControl& control, Incumbent& incumbent)
      : problem_(problem),
        sparse_(sparse),
        options_(options),
        control_(control),
        incumbent_(incumbent),
        make_(problem, sparse),
        large_places_(sparse.HasLargePlaces()),
        exact_groups_(sparse.groups.exact),
        dense_(IsDense()),
        lines_(problem, options, control, incumbent) {
    limit_ = static_cast<uint32_t>(options_.Or("rounds", control_.has_deadline()
                                                             ? std::numeric_limits<uint32_t>::max()
                                                             : kRoundsWithoutDeadline));
  }

  // Why it ended.
  std::string Run() {
    const std::string why = RunRounds();
    lines_.Finish();
    if (!incumbent_.Proven(incumbent_.score())) return why;
    if (!IsCongestionAlone()) return incumbent_.bound_reason();
    return absl::StrCat(incumbent_.bound_reason(), "; ", RefineEquals());
  }

 private:
  using Tasks = std::vector<PortfolioTask>;

  std::string RunRounds() {
    BoundCongestion();
    Begin();
    if (problem_.rank_count() <= kFewRanks && TryAll()) {
      incumbent_.SetBound(incumbent_.score(),
                          "it is the optimum: all mappings have been looked at");
    }
    for (; round_ < limit_; ++round_) {
      if (round_ == kCostBoundRound) BoundCost();
      if (incumbent_.Proven(incumbent_.score())) return incumbent_.bound_reason();
      if (control_.stopped()) return "stopped by its budget or its caller";
      Round();
      TryProof();
    }
    return "all rounds are done";
  }

  // The congestion cannot be less. Of orders with as much, which may be nearly all there are, it
  // goes on for those with fewer full channels and fewer hop-bytes.
  std::string RefineEquals() {
    const std::string sought = "of the orders with as much, fewer hop-bytes were sought ";
    lines_.RefineEquals();
    refines_equals_ = true;
    uint32_t stale = 0;
    for (uint32_t round = 0; round_ < limit_ && stale < kStaleRoundsOfEquals; ++round, ++round_) {
      if (control_.stopped()) return sought + "until it was stopped by its budget or its caller";
      const MappingStanding before = incumbent_.standing();
      RoundOfEquals(round);
      stale = incumbent_.standing().IsBetterThan(before) ? 0 : stale + 1;
    }
    return sought + (round_ < limit_ ? "until rounds came to nothing more" : "in all rounds");
  }

  // What it cannot measure it leaves to others.
  bool TryAll() {
    const SearchControl share = control_.PartOfTime(kShareOfExhaustive);
    return TryAllMappings(problem_, sparse_, share, incumbent_).value_or(false);
  }

  bool IsCongestionAlone() const {
    const Objective& objective = problem_.objective;
    return objective.congestion > 0 && objective.hop_bytes == 0 && objective.qap_cost == 0;
  }

  // Shares by the approximation depend on each other: nobody knows a bound.
  bool CanBoundCongestion() const {
    return IsCongestionAlone() && problem_.traffic != TrafficModel::kApproximate &&
           *incumbent_.present().max_congestion > 0 && incumbent_.TimeForScores(kScoresOfBound);
  }

  void BoundCongestion() {
    if (CanBoundCongestion()) SetBound(FindCongestionBound(problem_));
  }

  void SetBound(const CongestionBound& bound) {
    incumbent_.SetBound(bound.value / *incumbent_.present().max_congestion,
                        absl::StrFormat("proven: no order's greatest congestion is below %g, %s",
                                        bound.value, bound.reason));
  }

  // Whether there is nothing better: soon for a moment, and for longer, a few times for each best
  // order, once the search comes to nothing more.
  void TryProof() {
    if (!CanBoundCongestion()) return;
    if (incumbent_.score() < tried_score_) proofs_tried_ = 0;
    if (proofs_tried_ == (lines_.converged() ? kProofs : 1)) return;
    tried_score_ = incumbent_.score();
    ++proofs_tried_;
    if (proof_ == nullptr) proof_ = std::make_unique<CongestionProof>(problem_);
    const SearchControl share =
        control_.PartOfTime(options_.threads > 1 ? kShareOfProof : kShareOfProofAlone);
    const double congestion = incumbent_.score() * *incumbent_.present().max_congestion;
    SetBound(
        proof_->Prove(incumbent_.best(), congestion, kProofNodes << (2 * proofs_tried_), share));
  }

  void BoundCost() {
    if (!sparse_.is_objective || control_.stopped()) return;
    const double least = LeastCost(sparse_);
    if (least <= 0) return;
    incumbent_.SetBound(incumbent_.AsScore(least),
                        absl::StrFormat("proven: no order's cost is below %g, with the heaviest "
                                        "partners of every rank in the nearest slots",
                                        least));
  }

  // Differs from that of any other round.
  uint64_t seed() const { return options_.seed * 1000003 + 2 * uint64_t{round_} + 2; }

  // The given numbering and quick methods, polished, within milliseconds.
  void Begin() {
    const Mapping present = incumbent_.best();
    RunAll(make_.Numberings());
    const bool congestion =
        problem_.objective.congestion > 0 && problem_.rank_count() <= kManyRanks;
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
      AddNamed({"recursive", "multicore", "greedy"}, present, quick);
      for (uint32_t cut = 0; cut < kCapacityCuts; ++cut) {
        quick.push_back(make_.Named("congestion", present, options_.seed + cut,
                                    {{"rounds", 0}, {"starts", 0}, {"cuts", 1}}));
      }
    }
    RunAll(quick);
    // The numbering of a program that was written with care is worth as much as a cut of its
    // pattern.
    if (control_.stopped() || incumbent_.Proven(incumbent_.score())) return;
    const double best = incumbent_.score();
    const double worth = problem_.objective.congestion > 0
                             ? std::numeric_limits<double>::infinity()
                             : kWorthSwapping * CostOf(sparse_, PlacesOf(incumbent_.best()));
    Tasks polish;
    if (1.0 < 1.25 * best) polish.push_back(make_.Polish(present, options_.seed, worth));
    for (const ScoredMapping& member : population_) {
      if (member.score > best && member.score < 1.25 * best && member.mapping != present) {
        polish.push_back(make_.Polish(member.mapping, options_.seed, worth));
      }
    }
    RunAll(polish);
  }

  // A round of the kind that suits the problem, with about twice the work of the one before.
  void Round() {
    CountStale();
    Tasks tasks;
    if (problem_.objective.congestion > 0) AddCongestion(tasks);
    // Where congestion is all that counts, hop-bytes lead to a start now and then: but while the
    // search for it gains, the time is its own.
    const bool gains =
        !tasks.empty() && !CostMatters() && control_.has_deadline() && !lines_.converged();
    if (round_ >= 2 && !others_ran_ && !gains) AddOthers(tasks);
    if (CostMatters() || (round_ % 3 == 0 && !gains) || tasks.empty()) AddByCost(round_, tasks);
    const bool is_stale = stale_rounds_ > 0 && round_ >= kFirstDenseRound;
    if (is_stale && CostMatters() && problem_.places->slot_count() <= kFewDenseSlots)
      AddForStale(tasks);
    RunAll(tasks);
  }

  // Of orders with as much congestion. `round` from 0.
  void RoundOfEquals(uint32_t round) {
    Tasks tasks;
    if (SearchesLines()) lines_.AddTo(tasks, population_);
    // The first numbering may have been as good as proven: then nobody has cut anything yet.
    if (round == 0) tasks.push_back(make_.QuickMultisection(seed(), true));
    AddByCost(round, tasks);
    RunAll(tasks);
  }

  // Runs tasks on all threads and merges what they come to in their order, so that threads change
  // nothing but the time. Once a task has come to what is proven to be the best, those after it are
  // stopped.
  void RunAll(const Tasks& tasks) {
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
      absl::StatusOr<Mapping> mapping =
          tasks[i].run(std::max(1U, threads / std::min(threads, count)),
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

  void Remember(const ScoredMapping& found) {
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

  void CountStale() {
    stale_rounds_ = incumbent_.score() < last_score_ ? 0 : stale_rounds_ + 1;
    last_score_ = incumbent_.score();
  }

  // From the best, and from another of the best: what helps the one is a dead end for the other.
  void AddCongestion(Tasks& tasks) {
    if (SearchesLines()) return lines_.AddTo(tasks, population_);
    if (!incumbent_.TimeForScores(kScoresOfCongestion)) return;
    const PortfolioTasks::Parameters parameters = {
        {"rounds", HeatsOf(round_)}, {"starts", 0}, {"cuts", 0}};
    tasks.push_back(make_.Named("congestion", incumbent_.best(), seed(), parameters));
    if (population_.empty()) return;
    const Mapping& other = population_[round_ % population_.size()].mapping;
    if (other != incumbent_.best()) {
      tasks.push_back(make_.Named("congestion", other, seed() + 1, parameters));
    }
  }

  void AddByCost(uint32_t round, Tasks& tasks) {
    if (large_places_) {
      AddForLargePlaces(round, tasks);
    } else if (dense_) {
      AddDense(round, tasks);
    } else {
      AddAnnealing(round, tasks);
    }
  }

  void AddForLargePlaces(uint32_t round, Tasks& tasks) const {
    if (round == 0) {
      tasks.push_back(make_.Settling(incumbent_.best(), seed()));
    } else {
      if (!exact_groups_) tasks.push_back(make_.FlatPartition(seed()));
      tasks.push_back(make_.CarefulMultisection(seed() + 1, 1 + round / 4));
    }
    const auto count = static_cast<uint32_t>(population_.size());
    for (uint32_t i = 0; count > 1 && i < 2 * std::min(round, kMaxDoublings); ++i) {
      Xoshiro random(seed() * 64 + i);
      const uint32_t a = random.Below(count - 1), b = a + 1 + random.Below(count - 1 - a);
      tasks.push_back(
          make_.Combination(population_[a].mapping, population_[b].mapping, seed() * 64 + i));
    }
  }

  void AddAnnealing(uint32_t round, Tasks& tasks) const {
    if (exact_groups_ && (CostMatters() || refines_equals_) && round < kCuttingRounds) {
      tasks.push_back(make_.SwappedMultisection(seed(), 2 * (round + 1)));
      tasks.push_back(make_.SwappedMultisection(seed() + 1, 2 * (round + 1)));
      return;
    }
    const double proposals = std::ldexp(exact_groups_ ? kFirstProposals : kFirstProposalsInexact,
                                        static_cast<int>(std::min(round, kMaxDoublings)));
    tasks.push_back(make_.AnnealFrom(incumbent_.best(), seed(), proposals));
    tasks.push_back(make_.AnnealMultisection(seed() + 1, proposals));
  }

  void AddDense(uint32_t round, Tasks& tasks) {
    if (Turn(0, round)) AddAnnealing(ways_[0].turns - 1, tasks);
    if (round < kFirstDenseRound) return;
    if (Turn(1, round)) AddMemetic(ways_[1].turns - 1, tasks);
    if (Turn(2, round)) AddTabu(ways_[2].turns - 1, tasks);
  }

  void AddMemetic(uint32_t turn, Tasks& tasks) const {
    const MemeticTurn memetic = MemeticOf(turn);
    tasks.push_back(make_.Named("memetic", incumbent_.best(), seed() + 2,
                                {{"population", memetic.population},
                                 {"sweeps", memetic.sweeps},
                                 {"epochs", memetic.epochs}}));
  }
  void AddTabu(uint32_t turn, Tasks& tasks) const {
    tasks.push_back(
        make_.Named("robust-tabu", incumbent_.best(), seed() + 3, {{"steps", TabuStepsOf(turn)}}));
  }

  bool Turn(uint32_t way, uint32_t round) {
    const auto leads = [&](const DenseWay& w) {
      return std::find(w.names.begin(), w.names.end(), incumbent_.winner()) != w.names.end();
    };
    const bool known = std::any_of(ways_.begin(), ways_.end(), leads);
    const bool waits =
        known && !leads(ways_[way]) && stale_rounds_ < kStaleRounds && round % 3 != 0;
    if (ways_[way].turns >= kEqualTurns && waits) return false;
    ++ways_[way].turns;
    return true;
  }

  // After rounds without gain: what suits dense problems, and the exchanges of whole places of
  // "congestion", for any problem that is small enough.
  void AddForStale(Tasks& tasks) {
    const uint32_t turn = std::min(stale_turns_++, kMaxStaleTurns);
    if (problem_.on_fabric() && problem_.objective.congestion == 0) {
      tasks.push_back(make_.Named("congestion", incumbent_.best(), seed() + 4,
                                  {{"rounds", kStaleHeats * (turn + 1)},
                                   {"starts", turn == 0 ? 1 : 0},
                                   {"cuts", turn == 0 ? kCapacityCuts : 0}}));
    }
    if (dense_) return;  // has them anyway
    AddMemetic(turn, tasks);
    AddTabu(turn, tasks);
  }

  // What other files of the table know, once: they end by themselves, and soon.
  void AddOthers(Tasks& tasks) {
    others_ran_ = true;
    if (problem_.rank_count() > kManyRanks) return;
    const Mapping& best = incumbent_.best();
    AddNamed({"multisection", "cp-nsc", "hierarchical-clustering", "pair-exchange"}, best, tasks);
    if (problem_.objective.congestion > 0) {  // the others have been there from the beginning
      AddNamed({"threshold-accepting"}, best, tasks);
    } else {
      AddNamed({"rcm", "greedy", "recursive", "multicore"}, best, tasks);
    }
  }

  void AddNamed(std::initializer_list<const char*> names, const Mapping& start,
                Tasks& tasks) const {
    for (const char* name : names) {
      tasks.push_back(make_.Named(name, start, options_.seed, {}));
    }
  }

  // A search for the QAP cost says something of the objective.
  bool CostMatters() const {
    return problem_.objective.hop_bytes > 0 || problem_.objective.qap_cost > 0;
  }

  bool IsDense() const {
    const double slots = problem_.places->slot_count();
    if (slots > kPortfolioDenseSlots || large_places_ || !CostMatters()) return false;
    const auto pairs = static_cast<double>(problem_.pattern->pair_count());
    return kDensePart * pairs > slots * (slots - 1) / 2;
  }

  // Congestion counts, and there is time to make searches for it ready.
  bool SearchesLines() const {
    return problem_.objective.congestion > 0 && problem_.rank_count() <= kManyRanks &&
           incumbent_.TimeForScores(kScoresOfCongestion);
  }

  const MappingProblem& problem_;
  const SparseProblem& sparse_;
  const MethodOptions& options_;
  const SearchControl& control_;
  Incumbent& incumbent_;
  const PortfolioTasks make_;
  const bool large_places_, exact_groups_, dense_;
  CongestionLines lines_;
  uint32_t limit_ = 0, round_ = 0;  // rounds at most, and done
  bool others_ran_ = false;         // AddOthers
  bool refines_equals_ = false;     // a proven score ends nothing
  std::array<DenseWay, 3> ways_ = {DenseWay{{"annealing", "annealing of a multisection"}},
                                   DenseWay{{"memetic"}}, DenseWay{{"robust-tabu"}}};
  double last_score_ = std::numeric_limits<double>::infinity();
  uint32_t stale_rounds_ = 0;               // in which last_score_ stayed
  uint32_t stale_turns_ = 0;                // AddForStale
  std::vector<ScoredMapping> population_;   // by score; what combinations are made of
  std::unique_ptr<CongestionProof> proof_;  // null until it is needed
  double tried_score_ = std::numeric_limits<double>::infinity();
  uint32_t proofs_tried_ = 0;  // of that score
};

}  // namespace

absl::StatusOr<Mapped> RunAuto(const MappingProblem& problem, const Mapping& start,
                               const MethodOptions& options, const SearchControl& control) {
  if (std::optional<Mapped> known = WithoutSearch(problem)) return *std::move(known);
  const Mapped hurried{start, "no time to search: what it was to start from is as far as it came"};
  if (control.stopped()) return hurried;
  ASSIGN_OR_RETURN(const SparsePointer sparse, MakeSparseProblem(problem, control));
  if (control.stopped()) return hurried;
  ASSIGN_OR_RETURN(const std::unique_ptr<Incumbent> incumbent,
                   Incumbent::Make(problem, *sparse, control));
  if (start != incumbent->best()) {
    const absl::StatusOr<ScoredMapping> scored = incumbent->ScoreOf(start);
    if (scored.ok()) incumbent->Merge("the given start", *scored);
  }
  std::string why = "nothing costs anything";
  if (!incumbent->Proven(incumbent->score())) {
    why = Portfolio(problem, *sparse, options, control, *incumbent).Run();
  }
  return Mapped{incumbent->best(), absl::StrCat(incumbent->Summary(), "; ", why)};
}

}  // namespace coppice
