#include "daemon/mapping/algorithm/auto.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/auto_exhaustive.h"
#include "daemon/mapping/algorithm/auto_incumbent.h"
#include "daemon/mapping/algorithm/auto_rounds.h"
#include "daemon/mapping/search/cost_bound.h"
#include "daemon/mapping/search/links/congestion_bound.h"
#include "daemon/mapping/search/links/congestion_proof.h"

namespace coppice {
namespace {

constexpr uint32_t kRoundsWithoutDeadline = 12;
constexpr uint32_t kStaleRoundsOfEquals = 4;
constexpr uint32_t kCostBoundRound = 4;  // of the cost: after what takes milliseconds
constexpr double kScoresOfBound =
    20;  // a bound is not looked for if so many measures take too long
constexpr double kShareOfExhaustive = 0.3;  // of the time that is left
constexpr double kShareOfProof = 0.4;       // of the time that is left, each time
constexpr double kShareOfProofAlone = 0.1;  // with one thread, which is the search's, too
constexpr uint32_t kProofs = 3;             // tries at most for one score
constexpr uint64_t kProofNodes = 1 << 12;   // of the first; then four times as many each time

// Ranks that talk to themselves alone: the heaviest belongs where that costs least (the least sum
// of products of two sequences has them in opposite orders).
Mapping HeaviestWhereLeast(const MappingProblem& problem) {
  const PlaceDistances& d = *problem.distances;
  std::vector<uint32_t> ranks(problem.rank_count()), slots(problem.places->slot_count());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::iota(slots.begin(), slots.end(), 0);
  std::stable_sort(ranks.begin(), ranks.end(), [&](uint32_t a, uint32_t b) {
    return problem.pattern->self_bytes(a) > problem.pattern->self_bytes(b);
  });
  const auto cost = [&](uint32_t slot) {
    const PlaceIndex p = problem.places->place_of_slot(slot);
    return d(p, p);
  };
  std::stable_sort(slots.begin(), slots.end(),
                   [&](uint32_t a, uint32_t b) { return cost(a) < cost(b); });
  Mapping mapping(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i)
    mapping[ranks[i]] = problem.places->place_of_slot(slots[i]);
  return mapping;
}

// The answer where no search is needed.
std::optional<Mapped> WithoutSearch(const MappingProblem& problem) {
  if (problem.pattern->pair_count() > 0) return std::nullopt;
  bool speaks = false;
  for (uint32_t r = 0; r < problem.rank_count(); ++r) {
    speaks = speaks || problem.pattern->self_bytes(r) > 0;
  }
  if (speaks && problem.objective.qap_cost > 0 && HasSelfDistances(*problem.distances)) {
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

class Portfolio final {
 public:
  Portfolio(const MappingProblem& problem, const SparseProblem& sparse,
            const AlgorithmOptions& options, const SearchControl& control, Incumbent& incumbent)
      : problem_(problem),
        sparse_(sparse),
        options_(options),
        control_(control),
        incumbent_(incumbent),
        rounds_(problem, sparse, options, control, incumbent) {
    const auto given = static_cast<uint32_t>(ParameterOf(AutoAlgorithm(), options_, "rounds"));
    limit_ = given > 0                 ? given
             : control_.has_deadline() ? std::numeric_limits<uint32_t>::max()
                                       : kRoundsWithoutDeadline;
  }

  // Why it ended.
  std::string Run() {
    const std::string why = RunRounds();
    rounds_.Finish();
    if (!incumbent_.Proven(incumbent_.score())) return why;
    if (!IsCongestionAlone()) return incumbent_.bound_reason();
    return absl::StrCat(incumbent_.bound_reason(), "; ", RefineEquals());
  }

 private:
  std::string RunRounds() {
    BoundCongestion();
    rounds_.Begin();
    if (problem_.rank_count() <= kFewRanks && TryAll()) {
      incumbent_.SetBound(incumbent_.score(),
                          "it is the optimum: all mappings have been looked at");
    }
    for (; round_ < limit_; ++round_) {
      if (round_ == kCostBoundRound) BoundCost();
      if (incumbent_.Proven(incumbent_.score())) return incumbent_.bound_reason();
      if (control_.stopped()) return "stopped by its budget or its caller";
      rounds_.Round(round_);
      TryProof();
    }
    return "all rounds are done";
  }

  // The congestion cannot be less. Of orders with as much, which may be nearly all there are, it
  // goes on for those with fewer full channels and fewer hop-bytes.
  std::string RefineEquals() {
    const std::string sought = "of the orders with as much, fewer hop-bytes were sought ";
    rounds_.RefineEquals();
    uint32_t stale = 0;
    for (uint32_t round = 0; round_ < limit_ && stale < kStaleRoundsOfEquals; ++round, ++round_) {
      if (control_.stopped()) return sought + "until it was stopped by its budget or its caller";
      const MappingStanding before = incumbent_.standing();
      rounds_.RoundOfEquals(round, options_.seed * 1000003 + 2 * uint64_t{round_} + 2);
      stale = incumbent_.standing().IsBetterThan(before) ? 0 : stale + 1;
    }
    return sought + (round_ < limit_ ? "until rounds came to nothing more" : "in all rounds");
  }

  // What it cannot measure it leaves to others.
  bool TryAll() {
    const double least = (1 - kShareOfExhaustive) * control_.remaining();
    const SearchControl share(
        [&] {
          return control_.stopped() || (control_.has_deadline() && control_.remaining() < least);
        },
        nullptr);
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
    if (proofs_tried_ == (rounds_.converged() ? kProofs : 1)) return;
    tried_score_ = incumbent_.score();
    ++proofs_tried_;
    if (proof_ == nullptr) proof_ = std::make_unique<CongestionProof>(problem_);
    const double part = options_.threads > 1 ? kShareOfProof : kShareOfProofAlone;
    const double least = (1 - part) * control_.remaining();
    const SearchControl share(
        [&] {
          return control_.stopped() || (control_.has_deadline() && control_.remaining() < least);
        },
        nullptr);
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

  const MappingProblem& problem_;
  const SparseProblem& sparse_;
  const AlgorithmOptions& options_;
  const SearchControl& control_;
  Incumbent& incumbent_;
  Rounds rounds_;
  uint32_t limit_ = 0, round_ = 0;          // rounds at most, and done
  std::unique_ptr<CongestionProof> proof_;  // null until it is needed
  double tried_score_ = std::numeric_limits<double>::infinity();
  uint32_t proofs_tried_ = 0;  // of that score
};

absl::StatusOr<Mapped> Auto(const MappingProblem& problem, const Mapping& start,
                            const AlgorithmOptions& options, const SearchControl& control) {
  if (std::optional<Mapped> known = WithoutSearch(problem)) return *std::move(known);
  const Mapped hurried{start, "no time to search: what it was to start from is as far as it came"};
  if (control.stopped()) return hurried;
  ASSIGN_OR_RETURN(const std::shared_ptr<const SparseProblem> sparse,
                   MakeSparseProblem(problem, control));
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

}  // namespace

const MappingAlgorithm& AutoAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{
      "auto",
      "a portfolio of all of them",
      true,
      {{"rounds", 0, 0, 1e6,
        "each with about twice the work of the one before; 0: until the deadline, or 12 without"}},
      Auto};
  return *entry;
}

}  // namespace coppice
