#include "daemon/placement/placer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "daemon/base/status_macros.h"
#include "daemon/placement/placement_constraints.h"
#include "daemon/placement/placement_index.h"
#include "daemon/placement/placement_request.h"
#include "daemon/placement/placement_search.h"

namespace coppice {
namespace {

// Why a placement is as it is, in words.
std::string Counted(uint32_t count, absl::string_view one, absl::string_view many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

std::string Leaves(uint32_t count) { return Counted(count, "leaf switch", "leaf switches"); }

// Constraints that may ask for more leaf switches than the hosts need.
std::vector<std::string> SpreadingConstraints(const PlacementConstraints& c) {
  std::vector<std::string> names;
  if (c.hosts_per_leaf > 0) names.push_back(absl::StrCat(c.hosts_per_leaf, " hosts per leaf"));
  if (c.max_hosts_per_leaf > 0) {
    names.push_back(absl::StrCat("at most ", c.max_hosts_per_leaf, " hosts per leaf"));
  }
  if (c.min_leaf_switches > 1) {
    names.push_back(absl::StrCat("at least ", c.min_leaf_switches, " leaf switches"));
  }
  if (c.min_pods > 1) names.push_back(absl::StrCat("at least ", c.min_pods, " pods"));
  if (c.same_pod) names.push_back("the same pod");
  if (c.exclusive_switches) names.push_back("exclusive switches");
  if (!c.include.empty()) names.push_back("hosts to include");
  if (!c.avoid.empty()) names.push_back("hosts to avoid");
  if (!c.candidates.empty()) names.push_back("the candidates named");
  return names;
}

// Why there are more leaf switches than the emptiest ones would need; "" if there are not.
std::string WhyMoreLeaves(const PlacementQuestion& question, const PlacementMeasures& m) {
  const PlacementConstraints& c = question.request.constraints;
  const uint32_t largest = std::max(1U, question.index.largest_leaf());
  const uint32_t empty = (c.host_count + largest - 1) / largest;
  if (m.leaf_switches > m.least_leaf_switches) {
    const std::vector<std::string> names = SpreadingConstraints(c);
    if (!names.empty()) {
      return absl::StrCat(Leaves(m.least_leaf_switches), " would do without ",
                          absl::StrJoin(names, ", "));
    }
    return absl::StrCat(Leaves(m.least_leaf_switches),
                        " would do, but are farther apart, more loaded or break up more");
  }
  if (m.leaf_switches > empty) {
    return absl::StrCat("held hosts stood in the way of ", Leaves(empty));
  }
  return "";
}

// Why there are several pods; "" if there is one, or if one would do.
std::string WhyMorePods(const PlacementQuestion& question, const PlacementMeasures& m) {
  if (m.pods < 2) return "";
  std::vector<uint32_t> open(question.index.pod_count(), 0);
  for (const OpenLeaf& leaf : question.open.leaves) {
    open[question.index.pod_of(leaf.leaf)] += leaf.most;
  }
  const uint32_t most = *absl::c_max_element(open);
  if (most >= question.request.constraints.host_count) return "";
  return absl::StrCat("no pod has more than ", Counted(most, "host", "hosts"), " to give");
}

struct Difference {
  const char* term;
  double weighed;  // what the next best set costs more in this term
};

// The terms by which two sets of hosts differ, the greatest advantage of the first set first.
std::vector<Difference> Differences(const PlacementObjective& objective,
                                    const PlacementMeasures& best, const PlacementMeasures& next) {
  std::vector<Difference> differences;
  for (const PlacementTerm& term : kPlacementTerms) {
    const double more = term.measure.Of(next) - term.measure.Of(best);
    differences.push_back({term.name, objective.*term.weight * more});
  }
  absl::c_stable_sort(differences,
                      [](const auto& a, const auto& b) { return a.weighed > b.weighed; });
  return differences;
}

std::string Words(const char* name) { return absl::StrReplaceAll(name, {{"_", " "}}); }

std::string WhatDecided(const PlacementQuestion& question, const SearchResult& found,
                        const PlacementMeasures& measures) {
  constexpr double kNothing = 1e-6;
  for (const Choice& other : found.choices) {
    if (other.cost <= found.choices.front().cost + kNothing) continue;
    // Sets that the search did not measure in full are small.
    const PlacementMeasures next = other.measures ? *other.measures : question.Measure(other.hosts);
    const auto differences = Differences(question.request.objective, measures, next);
    const Difference &most = differences.front(), &least = differences.back();
    if (most.weighed <= kNothing) continue;
    std::string text = absl::StrFormat("%s decided: the next best set met costs %.3g more there",
                                       Words(most.term), most.weighed);
    if (least.weighed < -kNothing) {
      absl::StrAppendFormat(&text, " and %.3g less in %s", -least.weighed, Words(least.term));
    }
    return text;
  }
  return "";
}

// What was chosen, what decided between it and the next best set that the search met, what stood in
// the way of fewer leaf switches, links of its own or entries, and whether it is proven.
std::string ReasonFor(const PlacementQuestion& question, const PlacementMeasures& m,
                      const SearchResult& found, bool is_optimal) {
  std::vector<std::string> parts;
  parts.push_back(absl::StrCat(
      Counted(question.request.constraints.host_count, "host", "hosts"), " on ",
      Leaves(m.leaf_switches), " of ", Counted(m.pods, "pod", "pods"),
      m.leaf_switches == m.least_leaf_switches ? ", the fewest leaf switches that free hosts allow"
                                               : ""));
  parts.push_back(WhyMoreLeaves(question, m));
  parts.push_back(WhyMorePods(question, m));
  parts.push_back(WhatDecided(question, found, m));
  if (m.fragmentation < 0) {
    parts.push_back(absl::StrCat("fills up ", Leaves(static_cast<uint32_t>(-m.fragmentation)),
                                 " used in part before"));
  }
  if (m.shared_links > 0) {
    parts.push_back(
        absl::StrCat(Counted(m.shared_links, "link is", "links are"), " shared with others"));
  }
  if (m.switches_without_entries > 0) {
    parts.push_back(absl::StrCat(Counted(m.switches_without_entries, "switch has", "switches have"),
                                 " too few entries left for its trees"));
  }
  parts.push_back(is_optimal ? "proven: no set that meets the constraints costs less"
                             : "heuristic: another set may cost less");
  std::erase(parts, "");
  return absl::StrJoin(parts, "; ");
}

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
  absl::c_sort(free, std::greater<>());
  uint32_t leaves = 0;
  for (uint32_t left = hosts; left > 0; ++leaves) left -= std::min(left, free[leaves]);
  return leaves;
}

// In words; of a set that the pattern chose rather than the search, what that costs.
std::string Reason(const PlacementQuestion& question, const SearchResult& found,
                   const PlacementPlan& plan) {
  const Choice& without = found.choices.front();
  PlacementMeasures measures = plan.measures;
  measures.traffic = 0;  // which the search for hosts does not know
  if (plan.hosts == without.hosts) return ReasonFor(question, measures, found, plan.is_optimal);
  const double more = Cost(question.request.objective, measures) - without.cost;
  return absl::StrCat(
      ReasonFor(question, measures, {}, plan.is_optimal),
      absl::StrFormat("; the pattern decided: the best hosts without it cost %.3g less", more));
}

absl::StatusOr<PlacementPlan> Answer(const PlacementQuestion& question,
                                     const SearchControl& control) {
  const PlacementRequest& request = question.request;
  SearchResult found = SearchPlacement(question, SearchLimits{});
  for (Choice& choice : found.choices) SortByLeaf(question.index, choice.hosts);
  PlacementPlan plan;
  if (request.pattern != nullptr) {
    ASSIGN_OR_RETURN(plan, OrderRanks(question, found, PatternLimits{}, control));
  } else {
    plan.hosts = found.choices.front().hosts;
    plan.is_optimal = found.is_optimal;
  }
  const double max_congestion = plan.measures.max_congestion, traffic = plan.measures.traffic;
  const auto known = absl::c_find_if(
      found.choices, [&](const Choice& c) { return c.measures && c.hosts == plan.hosts; });
  plan.measures = known != found.choices.end() ? *known->measures : question.Measure(plan.hosts);
  plan.measures.least_leaf_switches =
      LeastLeafSwitches(question.open, request.constraints.host_count);
  plan.measures.max_congestion = max_congestion;
  plan.measures.traffic = traffic;
  plan.measures.cost = Cost(request.objective, plan.measures);
  const std::string of_order = std::move(plan.reason);
  plan.reason = Reason(question, found, plan);
  if (!of_order.empty()) absl::StrAppend(&plan.reason, "; order of ranks: ", of_order);
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
