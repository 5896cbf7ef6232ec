#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/algorithm/auto_incumbent.h"
#include "daemon/mapping/algorithm/auto_rounds.h"
#include "daemon/mapping/search/links/congestion_bound.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"

namespace coppice {
namespace {

// What no seating costs less than: a search that reaches it can stop.

// The row minima of P. C. Gilmore, "Optimal and suboptimal algorithms for the quadratic assignment
// problem", 1962, without the assignment of rows that follows there:
//
//     rank u:   9 7 2         the partners of u sit in other slots, at best the heaviest in the
//     place p:  2 2 4 4 4     nearest:  9*2 + 7*2 + 2*4;  the least over all places p, half of it
//                             for u and half for its partners, summed over u
//
// Reached by grids on grids, rings on rings; far below the optimum of most others. 0 if there are
// so many ranks and places that it is not worth its time. O(places^2 log + pairs * places).
double LeastCost(const SparseProblem& problem);

constexpr size_t kWorth = size_t{1} << 25;  // distances and products looked at

// [place] the distances of the nearest `count` other slots, ascending.
template <class Distances>
std::vector<std::vector<double>> NearestSlots(const Distances& d,
                                              const std::vector<uint32_t>& capacities,
                                              size_t count) {
  std::vector<std::vector<double>> nearest(capacities.size());
  std::vector<double> row;
  for (uint32_t p = 0; p < capacities.size(); ++p) {
    row.clear();
    for (uint32_t q = 0; q < capacities.size(); ++q) {
      const uint32_t slots = capacities[q] - (p == q ? 1 : 0);
      row.insert(row.end(), std::min<size_t>(slots, count), std::min(d(p, q), d(q, p)));
    }
    const size_t kept = std::min(count, row.size());
    std::partial_sort(row.begin(), row.begin() + static_cast<ptrdiff_t>(kept), row.end());
    nearest[p].assign(row.begin(), row.begin() + static_cast<ptrdiff_t>(kept));
  }
  return nearest;
}

double LeastCost(const SparseProblem& problem) {
  const WeightedGraph& links = problem.graph.links;
  const size_t places = problem.capacities.size();
  size_t degree = 0, slots = 0;
  for (uint32_t u = 0; u < links.vertex_count(); ++u) {
    degree = std::max(degree, links.begin[u + 1] - links.begin[u]);
  }
  for (const uint32_t capacity : problem.capacities) slots += std::min<size_t>(capacity, degree);
  if (places * (slots + links.neighbours.size()) > kWorth) return 0;
  const auto nearest =
      std::visit([&](const auto& d) { return NearestSlots(d, problem.capacities, degree); },
                 problem.distances->form());
  double least = 0;
  std::vector<double> weights;
  for (uint32_t u = 0; u < links.vertex_count(); ++u) {
    weights.assign(links.weights.begin() + static_cast<ptrdiff_t>(links.begin[u]),
                   links.weights.begin() + static_cast<ptrdiff_t>(links.begin[u + 1]));
    std::sort(weights.begin(), weights.end(), std::greater<>());
    double of_rank = std::numeric_limits<double>::infinity();
    for (uint32_t p = 0; p < places; ++p) {
      const PlaceIndex place(p);
      double sum = problem.graph.self.empty()
                       ? 0
                       : problem.graph.self[u] * (*problem.distances)(place, place);
      for (size_t i = 0; i < weights.size() && sum < of_rank; ++i) {
        sum += 0.5 * weights[i] * nearest[p][i];
      }
      of_rank = std::min(of_rank, sum);
    }
    least += of_rank;
  }
  return least;
}

// The best of all mappings of a few ranks, by branch and bound.
//
//          rank a        the heaviest rank first, on every place
//        /   |   (b3)
//      b1    b2   x      then the next: what is placed so far never costs less with more ranks,
//     /  |               so that a branch that costs as much as the best mapping ends (x)
//
// By the approximation of congestion more ranks may cost less, as all of them find other ways: it
// counts for whole mappings only.

inline constexpr uint32_t kFewRanks = 8;

// Branches looked at: a cost is some tens of nanoseconds, measures of a fabric are microseconds and
// more, by its channels.
constexpr uint64_t kCostBranches = 20'000'000;

constexpr uint64_t kMeasuredBranches = 1'000'000;

constexpr uint64_t kMeasuredChannels = 400'000'000;

std::vector<uint32_t> HeaviestFirst(const WeightedGraph& links) {
  std::vector<double> weight(links.vertex_count(), 0);
  for (uint32_t u = 0; u < links.vertex_count(); ++u) {
    for (size_t e = links.begin[u]; e < links.begin[u + 1]; ++e) weight[u] += links.weights[e];
  }
  std::vector<uint32_t> order(weight.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return weight[a] > weight[b]; });
  return order;
}

// The walk; Bound is what knows the objective of the ranks that are placed:
//   StatusOr<double> Add(depth, seats)   with order[0..depth] placed
template <class Bound>
class Walk final {
 public:
  Walk(const SparseProblem& sparse, const std::vector<uint32_t>& order, uint64_t branches,
       const SearchControl& control, Bound& bound)
      : order_(order),
        branches_(branches),
        control_(control),
        bound_(bound),
        room_(sparse.capacities),
        seats_(order.size(), 0) {}

  // Seats of a mapping below `least`, the best of all if complete(); empty if there is none.
  absl::StatusOr<Seats> Run(double least) {
    least_ = least;
    RETURN_IF_ERROR(Place(0));
    return best_;
  }
  bool complete() const { return branches_ > 0; }

 private:
  absl::Status Place(size_t depth) {
    if (depth == order_.size()) {
      best_ = seats_;
      least_ = value_;
      return absl::OkStatus();
    }
    for (uint32_t p = 0; p < room_.size(); ++p) {
      if (room_[p] == 0) continue;
      if (branches_ > 0 && ((branches_ & 63) != 0 || !control_.stopped())) {
        --branches_;
      } else {
        branches_ = 0;
        return absl::OkStatus();
      }
      seats_[order_[depth]] = p;
      ASSIGN_OR_RETURN(const double value, bound_.Add(depth, seats_));
      if (value >= least_ * (1 - 1e-12)) continue;
      --room_[p];
      value_ = value;
      RETURN_IF_ERROR(Place(depth + 1));
      ++room_[p];
    }
    return absl::OkStatus();
  }

  const std::vector<uint32_t>& order_;
  uint64_t branches_;
  const SearchControl& control_;
  Bound& bound_;
  std::vector<uint32_t> room_;  // [place]
  Seats seats_, best_;
  double value_ = 0, least_ = 0;
};

// The cost alone: that of the prefix before, and the links of the rank that is new.
template <class Cost>
class CostBound final {
 public:
  CostBound(const Cost& cost, const std::vector<uint32_t>& order)
      : cost_(cost), depth_of_(order.size()), sums_(order.size() + 1, 0), order_(order) {
    for (uint32_t d = 0; d < order.size(); ++d) depth_of_[order[d]] = d;
  }
  absl::StatusOr<double> Add(size_t depth, const Seats& seats) {
    const WeightedGraph& links = cost_.graph.links;
    const uint32_t u = order_[depth];
    double sum = sums_[depth];
    if (!cost_.graph.self.empty()) sum += cost_.graph.self[u] * cost_.d(seats[u], seats[u]);
    for (size_t e = links.begin[u]; e < links.begin[u + 1]; ++e) {
      const uint32_t v = links.neighbours[e];
      if (depth_of_[v] < depth) sum += cost_.Of(cost_.WeightOf(e), seats[u], seats[v]);
    }
    return sums_[depth + 1] = sum;
  }

 private:
  const Cost cost_;
  std::vector<size_t> depth_of_;  // [rank]
  std::vector<double> sums_;      // [ranks placed]
  const std::vector<uint32_t>& order_;
};

// Any objective: the measures of the pattern of the ranks placed so far, all others silent.
class MeasuredBound final {
 public:
  static absl::StatusOr<MeasuredBound> Make(const MappingProblem& problem,
                                            const std::vector<uint32_t>& order) {
    MeasuredBound made;
    const Pattern& pattern = *problem.pattern;
    std::vector<bool> placed(order.size(), false);
    for (const uint32_t rank : order) {
      placed[rank] = true;
      std::vector<Pattern::Entry> entries;
      for (uint32_t u = 0; u < order.size(); ++u) {
        if (!placed[u]) continue;
        entries.push_back({u, u, pattern.self_bytes(u), 0});
        for (const Exchange& x : pattern.exchanges(u)) {
          if (placed[x.peer]) entries.push_back({u, x.peer, x.out_bytes, 0});
        }
      }
      made.prefixes_.push_back(problem);
      ASSIGN_OR_RETURN(made.prefixes_.back().pattern,
                       Pattern::Make(pattern.rank_count(), std::move(entries)));
    }
    ASSIGN_OR_RETURN(made.present_, Measure(problem, problem.present()));
    return made;
  }
  absl::StatusOr<double> Add(size_t depth, const Seats& seats) {
    ASSIGN_OR_RETURN(MappingMeasures measures, Measure(prefixes_[depth], MappingOf(seats)));
    if (prefixes_[depth].traffic == TrafficModel::kApproximate && depth + 1 < prefixes_.size()) {
      measures.max_congestion = 0;
    }
    return Score(prefixes_[depth].objective, measures, present_);
  }

 private:
  std::vector<MappingProblem> prefixes_;  // [depth]
  MappingMeasures present_;
};

template <class Bound>
absl::StatusOr<bool> Search(const SparseProblem& sparse, const std::vector<uint32_t>& order,
                            uint64_t branches, double least, const SearchControl& control,
                            Bound& bound, Incumbent& incumbent) {
  Walk<Bound> walk(sparse, order, branches, control, bound);
  ASSIGN_OR_RETURN(const Seats best, walk.Run(least));
  if (!best.empty()) {
    ASSIGN_OR_RETURN(const ScoredMapping scored, incumbent.ScoreOf(MappingOf(best)));
    incumbent.Merge("all mappings", scored);
  }
  return walk.complete();
}

// True: incumbent's mapping is an optimum, which it now is or was. False: stopped, or beyond the
// number of branches that are tried. Problems of at most kFewRanks ranks. Memory: O(ranks * pairs).
absl::StatusOr<bool> TryAllMappings(const MappingProblem& problem, const SparseProblem& sparse,
                                    const SearchControl& control, Incumbent& incumbent) {
  const std::vector<uint32_t> order = HeaviestFirst(sparse.graph.links);
  if (!sparse.is_objective) {
    ASSIGN_OR_RETURN(MeasuredBound bound, MeasuredBound::Make(problem, order));
    const uint64_t channels = 1 + (problem.places->has_endpoints() && problem.snapshot != nullptr
                                       ? problem.snapshot->fabric->channel_count()
                                       : 0);
    return Search(sparse, order, std::min(kMeasuredBranches, kMeasuredChannels / channels),
                  incumbent.score(), control, bound, incumbent);
  }
  return VisitCost(*sparse.distances, sparse.graph, [&](const auto& cost) -> absl::StatusOr<bool> {
    CostBound bound(cost, order);
    const double least = CostOf(cost, PlacesOf(incumbent.best()));
    return Search(sparse, order, kCostBranches, least, control, bound, incumbent);
  });
}

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
  AutoRounds rounds_;
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
