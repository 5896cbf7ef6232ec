#include "daemon/placement/pattern_judge.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/placement/pattern_problem.h"
#include "daemon/placement/placement_check.h"

namespace coppice {
namespace {

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
    if (std::find(include.begin(), include.end(), goes) != include.end()) continue;
    pairs.emplace_back(goes, others[drawn % others.size()]);
  }
  std::shuffle(pairs.begin(), pairs.end(), rng);
  return pairs;
}

// `best` with one host exchanged, in the order of SortByLeaf; ranks stay with hosts.
PatternChoice Exchanged(const PlacementQuestion& question, const PatternChoice& best, Pair pair) {
  PatternChoice next;
  next.hosts = best.hosts;
  std::replace(next.hosts.begin(), next.hosts.end(), pair.first, pair.second);
  const std::vector<HostIndex> before = next.hosts;
  SortByLeaf(question.index, next.hosts);
  for (const PlaceIndex place : best.mapping) {
    const auto at = std::find(next.hosts.begin(), next.hosts.end(), before[place.value()]);
    next.mapping.emplace_back(static_cast<uint32_t>(at - next.hosts.begin()));
  }
  return next;
}

}  // namespace

double CostWithTraffic(const PlacementQuestion& question, double hosts_cost,
                       double max_congestion) {
  return hosts_cost + question.request.objective.traffic * TrafficOf(question, max_congestion);
}

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

}  // namespace coppice
