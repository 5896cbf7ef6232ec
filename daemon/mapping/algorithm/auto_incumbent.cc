#include "daemon/mapping/algorithm/auto_incumbent.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"

namespace coppice {
namespace {

// Scores of what a search offers on the way may take one part in so many of the time that is left.
constexpr double kScoresInTime = 20;
// A score that comes after the deadline may take this long, in seconds, or this part of the budget.
constexpr double kLate = 0.01, kLateShare = 0.1;
constexpr size_t kCheapPairs = size_t{1} << 20;  // whose score nobody minds, where nobody knows

}  // namespace

absl::StatusOr<std::unique_ptr<Incumbent>> Incumbent::Make(const MappingProblem& problem,
                                                           const SparseProblem& sparse,
                                                           const SearchControl& control) {
  std::unique_ptr<Incumbent> made(new Incumbent(problem, sparse, control));
  made->best_ = problem.present();
  if (sparse.is_objective) {
    made->present_cost_ = VisitCost(*sparse.distances, sparse.graph, [&](const auto& cost) {
      return CostOf(cost, PlacesOf(made->best_));
    });
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
  const double cost = VisitCost(*sparse_.distances, sparse_.graph,
                                [&](const auto& c) { return CostOf(c, PlacesOf(mapping)); });
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

}  // namespace coppice
