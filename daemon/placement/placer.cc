#include "daemon/placement/placer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/placement/placement_check.h"
#include "daemon/placement/placement_constraints.h"
#include "daemon/placement/placement_cost.h"
#include "daemon/placement/placement_index.h"
#include "daemon/placement/placement_reason.h"
#include "daemon/placement/placement_search.h"
#include "daemon/placement/rank_order.h"

namespace coppice {
namespace {

absl::Status CheckRequest(const PlacementIndex& index, const PlacementRequest& request) {
  RETURN_IF_ERROR(CheckConstraints(index, request.constraints));
  RETURN_IF_ERROR(CheckObjective(request.objective));
  if (request.ranks_per_host == 0) {
    return absl::InvalidArgumentError("0 ranks on each host: ask for at least one");
  }
  if (request.pattern == nullptr) return absl::OkStatus();
  const uint64_t slots = uint64_t{request.constraints.host_count} * request.ranks_per_host;
  if (request.pattern->rank_count() <= slots) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a pattern of ", request.pattern->rank_count(), " ranks for ", slots, " positions on ",
      request.constraints.host_count, " hosts: ask for more hosts or ranks on each"));
}

// Leaf switches that any choice of as many free hosts would need.
uint32_t LeastLeafSwitches(const OpenHosts& open, uint32_t hosts) {
  std::vector<uint32_t> free;
  for (const OpenLeaf& leaf : open.leaves) free.push_back(leaf.free);
  std::sort(free.begin(), free.end(), std::greater<>());
  uint32_t leaves = 0;
  for (uint32_t left = hosts; left > 0; ++leaves) left -= std::min(left, free[leaves]);
  return leaves;
}

// In words; of a set that the pattern chose rather than the search, what that costs.
std::string Reason(const PlacementQuestion& question, const SearchResult& found,
                   const PlacementPlan& plan) {
  const Choice& without = found.choices.front();
  if (plan.hosts == without.hosts) {
    return ReasonFor(question, plan.measures, found, plan.is_optimal);
  }
  const double more = Cost(question.request.objective, plan.measures, 0) - without.cost;
  return absl::StrCat(
      ReasonFor(question, plan.measures, {}, plan.is_optimal),
      absl::StrFormat("; the pattern decided: the best hosts without it cost %.3g less", more));
}

absl::StatusOr<PlacementPlan> Answer(const PlacementQuestion& question,
                                     const SearchControl& control) {
  const PlacementRequest& request = question.request;
  SearchResult found = SearchPlacement(question, SearchLimits{});
  for (Choice& choice : found.choices) SortByLeaf(question.index, choice.hosts);
  PlacementPlan plan;
  plan.is_optimal = found.is_optimal;
  RankOrder order;
  if (request.pattern != nullptr) {
    ASSIGN_OR_RETURN(order, OrderRanks(question, found, PatternLimits{}, control));
    plan.hosts = std::move(order.hosts);
    plan.permutation = std::move(order.permutation);
    plan.is_optimal = order.is_optimal;
  } else {
    plan.hosts = found.choices.front().hosts;
  }
  const auto known = std::find_if(found.choices.begin(), found.choices.end(), [&](const Choice& c) {
    return c.measures && c.hosts == plan.hosts;
  });
  plan.measures = known != found.choices.end() ? *known->measures : question.Measure(plan.hosts);
  plan.measures.least_leaf_switches =
      LeastLeafSwitches(question.open, request.constraints.host_count);
  plan.measures.max_congestion = order.max_congestion;
  plan.measures.cost = Cost(request.objective, plan.measures, order.traffic);
  plan.reason = Reason(question, found, plan);
  if (!order.reason.empty()) absl::StrAppend(&plan.reason, "; order of ranks: ", order.reason);
  RETURN_IF_ERROR(
      CheckPlacement(question.snapshot, question.occupancy, request.constraints, plan.hosts));
  return plan;
}

}  // namespace

absl::StatusOr<PlacementPlan> Place(const Snapshot& snapshot, const PlacementIndex& index,
                                    const Occupancy& occupancy, const PlacementRequest& request,
                                    const SearchControl& control) {
  RETURN_IF_ERROR(CheckRequest(index, request));
  PlacementRequest asked = request;
  if (asked.objective == PlacementObjective{}) asked.objective = DefaultObjective();
  const absl::StatusOr<OpenHosts> open = FindOpenHosts(index, occupancy, asked.constraints);
  if (open.status().code() == absl::StatusCode::kResourceExhausted) {
    RETURN_IF_ERROR(CheckAgainstEmptyFabric(index, asked.constraints));
  }
  RETURN_IF_ERROR(open.status());
  const PlacementQuestion question = {snapshot, index, occupancy, asked, *open};
  return Answer(question, control);
}

}  // namespace coppice
