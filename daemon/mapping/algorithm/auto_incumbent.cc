#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/auto.h"

namespace coppice {
namespace {

// Scores of what a search offers on the way may take one part in so many of the time that is left.
constexpr double kScoresInTime = 20;
// A score that comes after the deadline may take this long, in seconds, or this part of the budget.
constexpr double kLate = 0.01, kLateShare = 0.1;
constexpr size_t kCheapPairs = size_t{1} << 20;  // whose score nobody minds, where nobody knows

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

// The best of all mappings of a few ranks, by branch and bound.
//
//          rank a        the heaviest rank first, on every place
//        /   |   (b3)
//      b1    b2   x      then the next: what is placed so far never costs less with more ranks,
//     /  |               so that a branch that costs as much as the best mapping ends (x)

// Branches looked at: a cost is a tenth of a microsecond, measures of a fabric are microseconds and
// more, by its channels.
constexpr uint64_t kCostBranches = 10'000'000;
constexpr uint64_t kMeasuredBranches = 1'000'000;
constexpr uint64_t kMeasuredChannels = 400'000'000;

class AllMappings final {
 public:
  AllMappings(const MappingProblem& problem, const SparseProblem& sparse,
              const SearchControl& control)
      : sparse_(sparse),
        control_(control),
        order_(problem.pattern->HeaviestFirst()),
        room_(sparse.capacities),
        mapping_(problem.rank_count()) {
    const uint64_t channels =
        1 + (problem.on_fabric() ? problem.snapshot->fabric->channel_count() : 0);
    branches_ = sparse.is_objective ? kCostBranches
                                    : std::min(kMeasuredBranches, kMeasuredChannels / channels);
  }

  // A mapping that is better than the incumbent's goes to it. True: it is the best of all.
  absl::StatusOr<bool> Run(const MappingProblem& problem, Incumbent& incumbent) {
    RETURN_IF_ERROR(MakePrefixes(problem));
    if (sparse_.is_objective) {
      least_ = QapCost(*problem.pattern, *sparse_.distances, incumbent.best());
    } else {
      least_ = incumbent.score();
      ASSIGN_OR_RETURN(present_, Measure(problem, problem.present()));
    }
    RETURN_IF_ERROR(Place(0));
    if (!best_.empty()) {
      ASSIGN_OR_RETURN(const ScoredMapping scored, incumbent.ScoreOf(best_));
      incumbent.Merge("all mappings", scored);
    }
    return branches_ > 0;
  }

 private:
  // The pattern of the ranks that are placed at each depth, all others silent.
  absl::Status MakePrefixes(const MappingProblem& problem) {
    const Pattern& pattern = *problem.pattern;
    std::vector<bool> placed(order_.size(), false);
    for (const uint32_t rank : order_) {
      placed[rank] = true;
      std::vector<Pattern::Entry> entries;
      for (uint32_t u = 0; u < order_.size(); ++u) {
        if (!placed[u]) continue;
        entries.push_back({u, u, pattern.self_bytes(u), 0});
        for (const Exchange& x : pattern.exchanges(u)) {
          if (placed[x.peer]) entries.push_back({u, x.peer, x.out_bytes, 0});
        }
      }
      prefixes_.push_back(problem);
      ASSIGN_OR_RETURN(prefixes_.back().pattern,
                       Pattern::Make(pattern.rank_count(), std::move(entries)));
    }
    return absl::OkStatus();
  }

  // Of the objective of every mapping of which order_[0..depth] is placed so.
  absl::StatusOr<double> Bound(size_t depth) const {
    const MappingProblem& prefix = prefixes_[depth];
    if (sparse_.is_objective) return QapCost(*prefix.pattern, *sparse_.distances, mapping_);
    ASSIGN_OR_RETURN(MappingMeasures measures, Measure(prefix, mapping_));
    // By the approximation more ranks may congest less, as all of them find other ways: it counts
    // for whole mappings only.
    if (prefix.traffic == TrafficModel::kApproximate && depth + 1 < prefixes_.size()) {
      measures.max_congestion = 0;
    }
    return Score(prefix.objective, measures, present_);
  }

  absl::Status Place(size_t depth) {
    for (uint32_t p = 0; p < room_.size(); ++p) {
      if (room_[p] == 0) continue;
      if (branches_ % 64 == 0 && control_.stopped()) branches_ = 0;
      if (branches_ == 0) return absl::OkStatus();
      --branches_;
      mapping_[order_[depth]] = PlaceIndex(p);
      ASSIGN_OR_RETURN(const double value, Bound(depth));
      if (value >= least_ * (1 - 1e-12)) continue;
      if (depth + 1 == order_.size()) {
        best_ = mapping_;
        least_ = value;
        continue;
      }
      --room_[p];
      RETURN_IF_ERROR(Place(depth + 1));
      ++room_[p];
    }
    return absl::OkStatus();
  }

  const SparseProblem& sparse_;
  const SearchControl& control_;
  const std::vector<uint32_t> order_;
  uint64_t branches_;
  MappingMeasures present_;
  std::vector<MappingProblem> prefixes_;  // [depth]
  std::vector<uint32_t> room_;            // [place]
  Mapping mapping_, best_;
  double least_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Incumbent>> Incumbent::Make(const MappingProblem& problem,
                                                           const SparseProblem& sparse,
                                                           const SearchControl& control) {
  std::unique_ptr<Incumbent> made(new Incumbent(problem, sparse, control));
  made->best_ = problem.present();
  if (sparse.is_objective) {
    made->present_cost_ = CostOf(sparse, PlacesOf(made->best_));
    made->standing_.score = made->present_cost_ > 0 ? 1 : 0;
  } else {
    ASSIGN_OR_RETURN(made->present_, Measure(problem, made->best_));
    made->standing_ = StandingOf(problem.objective, made->present_, made->present_);
  }
  if (control.has_deadline()) made->scoring_ = made->budget_ - control.remaining();
  made->streamed_ = made->standing_;
  return made;
}

absl::StatusOr<ScoredMapping> Incumbent::ScoreOf(Mapping mapping) const {
  if (!sparse_.is_objective) {
    const double before = control_.remaining();
    ASSIGN_OR_RETURN(const MappingMeasures measures, Measure(problem_, mapping));
    const double took = before - control_.remaining();
    if (took > scoring_) scoring_ = took;
    return ScoredMapping{StandingOf(problem_.objective, measures, present_), std::move(mapping)};
  }
  const double cost = CostOf(sparse_, PlacesOf(mapping));
  return ScoredMapping{{.score = AsScore(cost)}, std::move(mapping)};
}

bool Incumbent::WorthScoring(bool last) const {
  if (!last) return !control_.stopped() && TimeForScores(kScoresInTime);
  if (!control_.has_deadline()) {
    return !control_.stopped() || problem_.pattern->pair_count() <= kCheapPairs;
  }
  return scoring_ <= std::max(kLate, kLateShare * budget_) || control_.remaining() > scoring_;
}

bool Incumbent::TimeForScores(double count) const {
  return !control_.has_deadline() || control_.remaining() > count * scoring_;
}

void Incumbent::Stream(const MappingStanding& standing, const Mapping& mapping) {
  const std::lock_guard<std::mutex> lock(stream_mutex_);
  if (!standing.IsBetterThan(streamed_)) return;
  streamed_ = standing;
  control_.Offer(mapping);
}

void Incumbent::Merge(const std::string& name, const ScoredMapping& found) {
  auto runner = std::find_if(runners_.begin(), runners_.end(),
                             [&](const Runner& r) { return r.name == name; });
  if (runner == runners_.end()) runner = runners_.insert(runner, {name, found.score, 0});
  runner->best = std::min(runner->best, found.score);
  ++runner->times;
  if (!found.IsBetterThan(standing_)) return;
  // One that has fewer hop-bytes and is hardly less smooth must not be the measure of the next one.
  const double smooth =
      found.HasScoreOf(standing_) ? std::min(standing_.smooth, found.smooth) : found.smooth;
  standing_ = found;
  standing_.smooth = smooth;
  best_ = found.mapping;
  winner_ = name;
  Stream(found, best_);
}

void Incumbent::SetBound(double least, std::string reason) {
  if (least <= least_) return;
  least_ = least;
  bound_reason_ = std::move(reason);
}

std::string Incumbent::Summary() const {
  std::string text =
      absl::StrFormat("%s won at %.4f of the present order", winner_, standing_.score);
  const double hop_bytes = present_.hop_bytes.value_or(0);
  if (standing_.hop_bytes > 0 && hop_bytes > 0) {
    absl::StrAppendFormat(&text, " and %.4f of its hop-bytes", standing_.hop_bytes / hop_bytes);
  }
  text += "; ran";
  for (const Runner& r : runners_) {
    absl::StrAppendFormat(&text, "%s %s %.4f", &r == runners_.data() ? "" : ",", r.name, r.best);
    if (r.times > 1) absl::StrAppendFormat(&text, " (%d times)", r.times);
  }
  if (runners_.empty()) text += " nothing";
  return text;
}

void Attempt::Offer(const Mapping& mapping) {
  if (!incumbent_.WorthScoring(false)) return;
  absl::StatusOr<ScoredMapping> found = incumbent_.ScoreOf(mapping);
  if (!found.ok()) return;
  incumbent_.Stream(*found, mapping);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (keeps_ && found->IsBetterThan(best_)) best_ = *std::move(found);
}

ScoredMapping Attempt::best_so_far() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return best_;
}

void Attempt::Finish(Mapping mapping) {
  if (mapping == best_.mapping || !incumbent_.WorthScoring(true)) return;
  absl::StatusOr<ScoredMapping> found = incumbent_.ScoreOf(std::move(mapping));
  if (!found.ok()) return;
  incumbent_.Stream(*found, found->mapping);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!best_.IsBetterThan(*found)) best_ = *std::move(found);
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

absl::StatusOr<bool> TryAllMappings(const MappingProblem& problem, const SparseProblem& sparse,
                                    const SearchControl& control, Incumbent& incumbent) {
  return AllMappings(problem, sparse, control).Run(problem, incumbent);
}

}  // namespace coppice
