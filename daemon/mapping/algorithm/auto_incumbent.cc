#include "daemon/mapping/algorithm/auto_incumbent.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/sparse_cost.h"

namespace coppice {
namespace {

// Scores closer than this are equal: sums of doubles in another order.
constexpr double kRounding = 1e-12;

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
    made->score_ = made->present_cost_ > 0 ? 1 : 0;
  } else {
    ASSIGN_OR_RETURN(made->present_, Measure(problem, made->best_));
    made->score_ = Score(problem.objective, made->present_, made->present_);
  }
  made->streamed_ = made->score_;
  return made;
}

absl::StatusOr<double> Incumbent::ScoreOf(const Mapping& mapping) const {
  if (!sparse_.is_objective) {
    ASSIGN_OR_RETURN(const MappingMeasures measures, Measure(problem_, mapping));
    return Score(problem_.objective, measures, present_);
  }
  const double cost = VisitCost(*sparse_.distances, sparse_.graph,
                                [&](const auto& c) { return CostOf(c, PlacesOf(mapping)); });
  return present_cost_ > 0 ? cost / present_cost_ : cost;
}

void Incumbent::Stream(const Mapping& mapping) {
  const absl::StatusOr<double> score = ScoreOf(mapping);
  if (!score.ok()) return;
  const std::lock_guard<std::mutex> lock(stream_mutex_);
  if (*score >= streamed_ - kRounding) return;
  streamed_ = *score;
  control_.Offer(mapping);
}

absl::Status Incumbent::Merge(const std::string& name, const Mapping& mapping) {
  ASSIGN_OR_RETURN(const double score, ScoreOf(mapping));
  auto runner = std::find_if(runners_.begin(), runners_.end(),
                             [&](const Runner& r) { return r.name == name; });
  if (runner == runners_.end()) runner = runners_.insert(runner, {name, score, 0});
  runner->best = std::min(runner->best, score);
  ++runner->times;
  if (score >= score_ - kRounding) return absl::OkStatus();
  score_ = score;
  best_ = mapping;
  winner_ = name;
  Stream(mapping);
  return absl::OkStatus();
}

std::string Incumbent::Summary() const {
  std::string text = absl::StrFormat("%s won at %.4f of the present order; ran", winner_, score_);
  for (const Runner& r : runners_) {
    absl::StrAppendFormat(&text, "%s %s %.4f", &r == runners_.data() ? "" : ",", r.name, r.best);
    if (r.times > 1) absl::StrAppendFormat(&text, " (%d times)", r.times);
  }
  if (runners_.empty()) text += " nothing";
  return text;
}

}  // namespace coppice
