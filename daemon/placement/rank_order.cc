// The search's own time is best spent on one set of hosts. Which one, quick orders tell
// (pattern_judge.h) of the sets that cost little without traffic, of some that are farther apart,
// and of those with a host exchanged.
#include "daemon/placement/rank_order.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/output/mapping_answer.h"
#include "daemon/mapping/search/links/congestion_bound.h"
#include "daemon/placement/pattern_judge.h"
#include "daemon/placement/pattern_problem.h"
#include "daemon/placement/placement_cost.h"
#include "daemon/placement/spread_choices.h"

namespace coppice {
namespace {

// Of the time that is left, each time.
constexpr double kShareOfExchange = 0.3, kShareOfExact = 0.5;
constexpr uint32_t kMostJudged = 400, kMostRanksJudged = 20'000;  // sets, and their ranks together
constexpr size_t kMostBounded = 4'096;  // open hosts over which a bound is looked for
// Of a time that is left, a part: true once that is over.
SearchControl PartOf(const SearchControl& control, double share) {
  const double least = (1 - share) * control.remaining();
  return SearchControl(
      [&control, least] {
        return control.stopped() || (control.has_deadline() && control.remaining() < least);
      },
      nullptr);
}

// Searches for a better order on the hosts of `best`, which it then has.
absl::StatusOr<RankOrder> SearchOrder(const PlacementQuestion& question,
                                      const SearchControl& control, PatternChoice& best) {
  ASSIGN_OR_RETURN(const MappingProblem problem, PatternProblem(question, best.hosts));
  ASSIGN_OR_RETURN(const MappingMeasures present, Measure(problem, problem.present()));
  ASSIGN_OR_RETURN(const MappingAlgorithm* const search, FindMappingAlgorithm(kAutoAlgorithm));
  AlgorithmOptions options;
  options.seed = question.request.seed;
  ASSIGN_OR_RETURN(MappingAnswer answer,
                   AnswerMapping(problem, present, *search, best.mapping, options, control));
  best.mapping = std::move(answer.mapping);
  best.max_congestion = answer.after.max_congestion.value_or(0);
  best.cost = CostWithTraffic(question, best.hosts_cost, best.max_congestion);
  RankOrder order;
  order.permutation = std::move(answer.slots);
  order.reason = std::move(answer.reason);
  return order;
}

// The order of `best` as it is.
absl::StatusOr<RankOrder> KeepOrder(const PlacementQuestion& question, const PatternChoice& best) {
  ASSIGN_OR_RETURN(const MappingProblem problem, PatternProblem(question, best.hosts));
  RankOrder order;
  order.permutation = AssignSlots(*problem.places, best.mapping);
  order.reason = "all sets of hosts and all orders on them have been looked at";
  return order;
}

// No hosts cost less, and no order on any has less congestion than the bytes that must leave hosts.
absl::StatusOr<bool> MeetsBounds(const PlacementQuestion& question, const SearchResult& found,
                                 const PatternChoice& best) {
  const double least = found.choices.front().cost;
  if (!found.is_optimal || best.hosts_cost > least + kEqualCost * (1 + std::abs(least)))
    return false;
  if (CostWithTraffic(question, 0, best.max_congestion) == 0) return true;
  if (question.open.hosts.size() > kMostBounded) return false;
  ASSIGN_OR_RETURN(const MappingProblem problem, PatternProblem(question, question.open.hosts));
  return best.max_congestion <= FindCongestionBound(problem).value * (1 + kEqualCost);
}

}  // namespace

absl::StatusOr<RankOrder> OrderRanks(const PlacementQuestion& question, const SearchResult& found,
                                     const PatternLimits& limits, const SearchControl& control) {
  std::vector<Choice> choices = found.choices;
  const bool counts = CostWithTraffic(question, 0, 1) > 0;
  if (counts) {
    for (Choice& spread : SpreadChoices(question, choices.front())) {
      SortByLeaf(question.index, spread.hosts);
      choices.push_back(std::move(spread));
    }
  }
  PatternChoice best;
  for (const Choice& choice : choices) {
    if (!best.hosts.empty() && control.stopped()) break;
    ASSIGN_OR_RETURN(PatternChoice judged, JudgeHosts(question, choice.hosts, choice.cost, {}));
    if (best.hosts.empty() || judged.cost < best.cost) best = std::move(judged);
  }
  bool is_complete = false;
  if (counts) {
    const uint32_t most =
        std::min(kMostJudged, kMostRanksJudged / question.request.pattern->rank_count());
    RETURN_IF_ERROR(ExchangeHosts(question, most, PartOf(control, kShareOfExchange), best));
    ASSIGN_OR_RETURN(is_complete,
                     SearchPatternExactly(question, limits, PartOf(control, kShareOfExact), best));
  }
  ASSIGN_OR_RETURN(RankOrder order,
                   is_complete ? KeepOrder(question, best) : SearchOrder(question, control, best));
  order.hosts = best.hosts;
  order.max_congestion = best.max_congestion;
  order.traffic = TrafficOf(question, best.max_congestion);
  order.is_optimal = is_complete;
  if (!is_complete) {
    ASSIGN_OR_RETURN(order.is_optimal, MeetsBounds(question, found, best));
  }
  return order;
}

}  // namespace coppice
