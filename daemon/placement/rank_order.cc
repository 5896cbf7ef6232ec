// The search's own time is best spent on one set of hosts. Which one, quick orders tell of the sets
// that cost little without traffic, of some that are farther apart, and of those with a host
// exchanged.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/output/mapping_answer.h"
#include "daemon/mapping/search/links/congestion_bound.h"
#include "daemon/mapping/search_control.h"
#include "daemon/placement/placement_request.h"
#include "daemon/placement/placement_search.h"

namespace coppice {
namespace {

// What a set of hosts is worth to a pattern, told in milliseconds: a multisection of the pattern
// along the fabric's groups, or the present order or one that is given where that is better.

constexpr size_t kFewPairs = 4'096;

using Pair = std::pair<HostIndex, HostIndex>;  // goes, comes

// Keeps `mapping` if it is better than what is there.
absl::Status Consider(const MappingProblem& problem, const Mapping& mapping,
                      PatternChoice& judged) {
  ASSIGN_OR_RETURN(const MappingMeasures measures, Measure(problem, mapping));
  const double congestion = measures.max_congestion.value_or(0);
  if (!judged.mapping.empty() && congestion >= judged.max_congestion) return absl::OkStatus();
  judged.max_congestion = congestion;
  judged.mapping = mapping;
  return absl::OkStatus();
}

// In an order drawn by `rng`.
std::vector<Pair> PairsOf(const PlacementQuestion& question, const std::vector<HostIndex>& hosts,
                          std::mt19937_64& rng) {
  const std::set<HostIndex> chosen(hosts.begin(), hosts.end());
  const std::vector<HostIndex>& include = question.request.constraints.include;
  std::set<uint32_t> leaves;
  for (const HostIndex h : hosts) leaves.insert(question.index.leaf_of(h));
  const bool few = hosts.size() * question.open.hosts.size() <= kFewPairs;
  std::vector<HostIndex> others;
  for (const HostIndex h : question.open.hosts) {
    if (!chosen.contains(h) && (few || leaves.contains(question.index.leaf_of(h)))) {
      others.push_back(h);
    }
  }
  std::vector<Pair> pairs;
  if (others.empty()) return pairs;
  const size_t all = hosts.size() * others.size();
  for (size_t i = 0; i < std::min(all, kFewPairs); ++i) {
    const size_t drawn = all <= kFewPairs ? i : rng() % all;
    const HostIndex goes = hosts[drawn / others.size()];
    if (absl::c_find(include, goes) != include.end()) continue;
    pairs.emplace_back(goes, others[drawn % others.size()]);
  }
  absl::c_shuffle(pairs, rng);
  return pairs;
}

// `best` with one host exchanged, in the order of SortByLeaf; ranks stay with hosts.
PatternChoice Exchanged(const PlacementQuestion& question, const PatternChoice& best, Pair pair) {
  PatternChoice next;
  next.hosts = best.hosts;
  absl::c_replace(next.hosts, pair.first, pair.second);
  const std::vector<HostIndex> before = next.hosts;
  SortByLeaf(question.index, next.hosts);
  for (const PlaceIndex place : best.mapping) {
    const auto at = absl::c_find(next.hosts, before[place.value()]);
    next.mapping.emplace_back(static_cast<uint32_t>(at - next.hosts.begin()));
  }
  return next;
}

// Of hosts and their traffic, as placement_terms.h weighs it.
double CostWithTraffic(const PlacementQuestion& question, double hosts_cost,
                       double max_congestion) {
  return hosts_cost + question.request.objective.traffic * TrafficOf(question, max_congestion);
}

// `known` is an order to try, too, or empty. Errors as those of the mapping engine.
absl::StatusOr<PatternChoice> JudgeHosts(const PlacementQuestion& question,
                                         const std::vector<HostIndex>& hosts, double hosts_cost,
                                         const Mapping& known) {
  ASSIGN_OR_RETURN(const MappingProblem problem, PatternProblem(question, hosts));
  PatternChoice judged;
  judged.hosts = hosts;
  judged.hosts_cost = hosts_cost;
  RETURN_IF_ERROR(Consider(problem, problem.present(), judged));
  if (!known.empty()) RETURN_IF_ERROR(Consider(problem, known, judged));
  if (question.request.pattern->pair_count() > 0 && hosts.size() > 1) {
    ASSIGN_OR_RETURN(const MappingAlgorithm* const quick, FindMappingAlgorithm("multisection"));
    AlgorithmOptions options;
    options.seed = question.request.seed;
    ASSIGN_OR_RETURN(const Mapped mapped, RunAlgorithm(*quick, problem, {}, options, {}));
    RETURN_IF_ERROR(Consider(problem, mapped.mapping, judged));
  }
  judged.cost = CostWithTraffic(question, hosts_cost, judged.max_congestion);
  return judged;
}

// Exchanges hosts of `best` for other open ones, one at a time, as long as judges find that to cost
// less: every pair where they are few, else some hosts of the leaf switches in use, drawn by the
// request's seed. Ends after `most_judged` sets, or by `control`.
absl::Status ExchangeHosts(const PlacementQuestion& question, uint32_t most_judged,
                           const SearchControl& control, PatternChoice& best) {
  std::mt19937_64 rng(question.request.seed);
  for (bool improved = true; improved;) {
    improved = false;
    for (const Pair& pair : PairsOf(question, best.hosts, rng)) {
      if (most_judged == 0 || control.stopped()) return absl::OkStatus();
      const PatternChoice next = Exchanged(question, best, pair);
      const absl::Status meets = CheckPlacement(question.snapshot, question.occupancy,
                                                question.request.constraints, next.hosts);
      if (!meets.ok()) continue;
      const double hosts_cost = question.Measure(next.hosts).cost;
      if (hosts_cost >= best.cost) continue;
      --most_judged;
      ASSIGN_OR_RETURN(PatternChoice judged,
                       JudgeHosts(question, next.hosts, hosts_cost, next.mapping));
      if (judged.cost >= best.cost - 1e-9) continue;
      best = std::move(judged);
      improved = true;
      break;
    }
  }
  return absl::OkStatus();
}

// Sets of hosts that are farther apart than the best one without traffic: where the links above
// leaf switches are thin, a pattern may be worth more of them.
uint32_t MostOnALeaf(const PlacementIndex& index, const std::vector<HostIndex>& hosts) {
  std::map<uint32_t, uint32_t> count;
  uint32_t most = 0;
  for (const HostIndex h : hosts) most = std::max(most, ++count[index.leaf_of(h)]);
  return most;
}

// For half as many hosts on a leaf switch as `best` has at most, a quarter, ... and one: the best
// set without traffic that has no more on any. None for what the constraints forbid. As many
// searches as that.
std::vector<Choice> SpreadChoices(const PlacementQuestion& question, const Choice& best) {
  std::vector<Choice> choices;
  if (question.request.constraints.hosts_per_leaf > 0) return choices;
  SearchLimits limits;
  limits.exact_patience = 0;  // which is best matters little, as traffic is not looked at
  for (uint32_t most = MostOnALeaf(question.index, best.hosts) / 2; most > 0; most /= 2) {
    PlacementRequest request = question.request;
    request.pattern = nullptr;
    request.constraints.max_hosts_per_leaf = most;
    const auto open = FindOpenHosts(question.index, question.occupancy, request.constraints);
    if (!open.ok()) break;
    const PlacementQuestion spread = {question.snapshot, question.index, question.occupancy,
                                      request, *open};
    choices.push_back(std::move(SearchPlacement(spread, limits).choices.front()));
  }
  return choices;
}

// Of the time that is left, each time.
constexpr double kShareOfExchange = 0.3, kShareOfExact = 0.5;
constexpr uint32_t kMaxJudged = 400, kMaxRanksJudged = 20'000;  // sets, and their ranks together
constexpr size_t kMaxBounded = 4'096;  // open hosts over which a bound is looked for

// Searches for a better order on the hosts of `best`, which it then has.
absl::StatusOr<PlacementPlan> SearchOrder(const PlacementQuestion& question,
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
  PlacementPlan order;
  order.permutation = std::move(answer.slots);
  order.reason = std::move(answer.reason);
  return order;
}

// The order of `best` as it is.
absl::StatusOr<PlacementPlan> KeepOrder(const PlacementQuestion& question,
                                        const PatternChoice& best) {
  ASSIGN_OR_RETURN(const MappingProblem problem, PatternProblem(question, best.hosts));
  PlacementPlan order;
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
  if (question.open.hosts.size() > kMaxBounded) return false;
  ASSIGN_OR_RETURN(const MappingProblem problem, PatternProblem(question, question.open.hosts));
  return best.max_congestion <= FindCongestionBound(problem).value * (1 + kEqualCost);
}

}  // namespace

absl::StatusOr<PlacementPlan> OrderRanks(const PlacementQuestion& question,
                                         const SearchResult& found, const PatternLimits& limits,
                                         const SearchControl& control) {
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
        std::min(kMaxJudged, kMaxRanksJudged / question.request.pattern->rank_count());
    RETURN_IF_ERROR(ExchangeHosts(question, most, control.PartOfTime(kShareOfExchange), best));
    ASSIGN_OR_RETURN(is_complete, SearchPatternExactly(question, limits,
                                                       control.PartOfTime(kShareOfExact), best));
  }
  ASSIGN_OR_RETURN(PlacementPlan order,
                   is_complete ? KeepOrder(question, best) : SearchOrder(question, control, best));
  order.hosts = best.hosts;
  order.measures.max_congestion = best.max_congestion;
  order.measures.traffic = TrafficOf(question, best.max_congestion);
  order.is_optimal = is_complete;
  if (!is_complete) {
    ASSIGN_OR_RETURN(order.is_optimal, MeetsBounds(question, found, best));
  }
  return order;
}

}  // namespace coppice
