#include "daemon/tree/trade.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/contended_metrics.h"
#include "daemon/tree/planner.h"
#include "daemon/tree/root_choice.h"
#include "daemon/tree/type1.h"
#include "daemon/tree/type2_candidate.h"

namespace coppice {
namespace {

constexpr size_t kMinTreesPerRoot = 8;
// The fastest of all builders, then of each.
constexpr std::array<std::optional<TreeBuilder>, 5> kTypeIBuilders = {
    std::nullopt, TreeBuilder::kKary, TreeBuilder::kKnomial, TreeBuilder::kHierarchical,
    TreeBuilder::kPostal};

using Serving = std::vector<uint32_t>;  // switch vertices, ascending

class TradeSearch {
 public:
  TradeSearch(const PlanInput& input, const TradeBounds& bounds)
      : in_(input), bounds_(bounds), bytes_(BytesOfMessages(input.profile, input.request)) {
    for (const SwitchCapacity& c : input.capacity) highest_ = std::max(highest_, c.degree_limit);
    const size_t members = in_.request.members.size();
    // Following four packets takes about as long as all else that is found out of a rank.
    const uint64_t packets =
        FollowsPackets(in_.profile, in_.request, static_cast<uint32_t>(members))
            ? PacketsToFollow(in_.profile, in_.request, members)
            : 0;
    const uint64_t affordable = std::max<uint64_t>(
        bounds.ranks / std::max<uint64_t>(members, packets / 4), TradeBounds::kMinTrees);
    left_ = std::min<uint64_t>(bounds.trees, affordable);
  }

  absl::Status OfferPlanned(const TreePlan& planned) {
    TradeTree tree = {planned, {}};
    RETURN_IF_ERROR(MeasureLink(tree));
    Keep(std::move(tree));
    return absl::OkStatus();
  }

  void OfferType1() {
    TreeRequest request = in_.request;
    for (const std::optional<TreeBuilder> builder : kTypeIBuilders) {
      if (in_.request.builder && in_.request.builder != builder) continue;
      request.builder = builder;
      absl::StatusOr<Type1Result> best =
          ChooseType1(in_.predicting, in_.profile, request, in_.places);
      if (!best.ok()) continue;
      TradeTree tree = {*std::move(best->best), {}};
      if (MeasureLink(tree).ok()) Keep(std::move(tree));
    }
  }

  void OfferType2() {
    const std::vector<SwitchIndex> roots = Roots();
    for (size_t r = 0; r < roots.size(); ++r) {
      absl::StatusOr<PhysicalTree> physical =
          BuildPhysicalTree(in_.snapshot, in_.places.endpoints, roots[r]);
      if (!physical.ok()) continue;
      share_ = left_ / (roots.size() - r);
      left_ -= share_;
      TryRoot(MakeType2Candidate(*in_.snapshot.fabric, in_.capacity, in_.places, highest_,
                                 *std::move(physical)));
      left_ += share_;
    }
  }

  Trade Take() {
    front_.Sort();
    Trade trade;
    trade.evaluated = evaluated_;
    for (const TradeFront::Point& point : front_.points()) {
      trade.trees.push_back(std::move(kept_[point.id]));
    }
    return trade;
  }

 private:
  // --- Roots: nearest first, then one hop farther; each in the order of SortRoots.

  std::vector<SwitchIndex> Roots() const {
    if (!in_.places.all_on_switches || in_.request.members.size() < 2) return {};
    if (in_.request.root_switch)
      return {*in_.snapshot.fabric->FindSwitch(*in_.request.root_switch)};
    const std::vector<uint8_t> farthest = FarthestHops(in_.snapshot, in_.places.leaf_switches);
    const uint8_t least = *absl::c_min_element(farthest);
    std::vector<SwitchIndex> roots;
    for (const uint32_t hops : {least + 0U, least + 1U}) {
      if (hops >= SwitchDistances::kUnreachable) break;
      std::vector<SwitchIndex> ring;
      for (uint32_t s = 0; s < farthest.size(); ++s) {
        if (farthest[s] == hops) ring.emplace_back(s);
      }
      SortRoots(in_.snapshot, in_.capacity, ring);
      roots.insert(roots.end(), ring.begin(), ring.end());
    }
    const size_t most = std::clamp<size_t>(left_ / kMinTreesPerRoot, 1, bounds_.roots);
    if (roots.size() > most) roots.resize(most);
    return roots;
  }

  // --- One root.

  void TryRoot(const Type2Candidate& candidate) {
    const Serving helpers = Helpers(candidate);
    if (bounds_.all_sets && helpers.size() < 16 && (size_t{1} << helpers.size()) <= share_) {
      return TryAllSets(candidate, helpers);
    }
    Serving all = helpers;
    if (!Works(candidate, all)) return;
    Offer(candidate, all);
    for (const bool for_time : {true, false}) {
      const std::vector<uint32_t> preference =
          ServingPreference(in_.snapshot, candidate, !for_time);
      const Serving least =
          ChooseServing(candidate.switches(candidate.degrees, preference)).serving;
      if (least.empty()) return;
      Offer(candidate, least);
      AddLevels(candidate, helpers, least, !for_time);
      StepByStep(candidate, helpers, least, for_time, /*adding=*/true);
      StepByStep(candidate, helpers, all, for_time, /*adding=*/false);
    }
  }

  void TryAllSets(const Type2Candidate& candidate, const Serving& helpers) {
    for (uint32_t mask = 1; mask < uint32_t{1} << helpers.size(); ++mask) {
      Serving serving;
      for (size_t i = 0; i < helpers.size(); ++i) {
        if ((mask >> i & 1) != 0) serving.push_back(helpers[i]);
      }
      const size_t size = serving.size();
      if (Works(candidate, serving) && serving.size() == size) Offer(candidate, serving);
    }
  }

  // From the least set up or from all switches down, one switch at a time, the best one. A step
  // costs a tree for every switch that may come or go.
  void StepByStep(const Type2Candidate& candidate, const Serving& helpers, Serving serving,
                  bool for_time, bool adding) {
    const auto steps = [&] { return adding ? helpers.size() - serving.size() : serving.size(); };
    while (steps() > 0 && share_ >= steps()) {
      Serving best;
      std::tuple<double, double> least = {kNever, kNever};
      for (const uint32_t v : adding ? helpers : serving) {
        const auto at = absl::c_lower_bound(serving, v);
        const bool serves = at != serving.end() && *at == v;
        if (serves == adding) continue;
        Serving next = serving;
        const auto place = next.begin() + (at - serving.begin());
        adding ? next.insert(place, v) : next.erase(place);
        if (!Works(candidate, next) || (adding && next.size() <= serving.size())) continue;
        const TradeFigures figures = Offer(candidate, next);
        std::tuple<double, double> key = {figures.total_us, figures.busiest_link_us};
        if (!for_time) std::swap(std::get<0>(key), std::get<1>(key));
        if (key >= least) continue;
        least = key;
        best = std::move(next);
      }
      if (best.empty()) return;
      serving = std::move(best);
    }
  }

  void AddLevels(const Type2Candidate& candidate, const Serving& helpers, Serving serving,
                 bool deepest_first) {
    const std::vector<int32_t>& parents = candidate.physical->parents;
    std::vector<uint32_t> depth(candidate.switch_count(), 0);
    for (size_t v = 1; v < depth.size(); ++v) depth[v] = depth[static_cast<size_t>(parents[v])] + 1;
    const uint32_t levels = *absl::c_max_element(depth) + 1;
    for (uint32_t i = 0; i < levels && share_ > 0; ++i) {
      const uint32_t level = deepest_first ? levels - 1 - i : i;
      for (const uint32_t v : helpers) {
        if (depth[v] == level) serving.push_back(v);
      }
      absl::c_sort(serving);
      serving.erase(std::unique(serving.begin(), serving.end()), serving.end());
      Serving useful = serving;
      if (Works(candidate, useful)) Offer(candidate, useful);
    }
  }

  // Drops the switches that would serve for one child; false: degree limits leave more than one
  // packet at the top. As HangItems counts: s items become max(1, s - K + 1).
  bool Works(const Type2Candidate& candidate, Serving& serving) {
    items_.assign(candidate.members_on.begin(), candidate.members_on.end());
    Serving useful;
    size_t left = serving.size();
    for (size_t v = items_.size(); v-- > 0;) {
      if (left > 0 && serving[left - 1] == v) {
        --left;
        const uint64_t most = candidate.degrees[v];
        if (items_[v] >= 2) {
          items_[v] = items_[v] > most ? items_[v] - most + 1 : 1;
          useful.push_back(static_cast<uint32_t>(v));
        }
      }
      if (v > 0) items_[static_cast<size_t>(candidate.physical->parents[v])] += items_[v];
    }
    serving.assign(useful.rbegin(), useful.rend());
    return items_[0] == 1 && !serving.empty();
  }

  // --- One tree.

  TradeFigures Offer(const Type2Candidate& candidate, const Serving& serving) {
    constexpr TradeFigures kNoTrade = {kNever, UINT32_MAX, kNever, 0};
    if (share_ == 0) return kNoTrade;
    --share_;
    TradeTree tree;
    tree.tree = HangRanks(*in_.snapshot.fabric, in_.request.members, in_.places,
                          *candidate.physical, candidate.members, candidate.degrees, serving);
    if (!EdgeCosts(in_.predicting, in_.profile, tree.tree, path_, tree.edges).ok()) return kNoTrade;
    tree.predicted = EvaluateMix(in_.profile, tree.tree, tree.edges, in_.request);
    if (!AddContention(in_.predicting, in_.profile, tree.tree, tree.edges, in_.request,
                       tree.predicted)
             .ok()) {
      return kNoTrade;
    }
    tree.physical = candidate.physical;
    if (!MeasureLink(tree).ok()) return kNoTrade;
    const TradeFigures figures = tree.figures();
    Keep(std::move(tree));
    return figures;
  }

  absl::Status MeasureLink(TradeTree& tree) {
    links_.Begin(in_.snapshot);
    RETURN_IF_ERROR(links_.AddTree(tree.tree, tree.physical.get()));
    links_.Take(uses_);
    tree.busiest = FindBusiestLink(in_.snapshot, in_.profile, bytes_, uses_);
    return absl::OkStatus();
  }

  void Keep(TradeTree&& tree) {
    ++evaluated_;
    if (!front_.Offer(tree.figures(), kept_.size())) return;
    kept_.push_back(std::move(tree));
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  const PlanInput in_;
  const TradeBounds& bounds_;
  const MessageBytes bytes_;
  uint32_t highest_ = 0;  // highest degree limit of any switch
  size_t left_ = 0;       // trees that other roots may still evaluate
  size_t share_ = 0;      // and the root at hand

  LinkUseCounter links_;
  std::vector<ChannelUse> uses_;
  std::vector<ChannelIndex> path_;
  std::vector<uint64_t> items_;
  TradeFront front_;
  std::vector<TradeTree> kept_;  // [id in the front]
  size_t evaluated_ = 0;
};

}  // namespace

TradeFigures TradeTree::figures() const {
  return {predicted.total_us, tree.serving_switch_count(), busiest.us, busiest.packets};
}

absl::StatusOr<Trade> FindTrade(const PlanInput& input, const TreePlan& planned,
                                const TradeBounds& bounds) {
  const TreeRequest& request = input.request;
  TradeSearch search(input, bounds);
  RETURN_IF_ERROR(search.OfferPlanned(planned));
  if (request.type != TreeType::kTypeII) search.OfferType1();
  if (TriesType2(request, input.profile)) search.OfferType2();
  return search.Take();
}

namespace {

std::string Describe(const TradeTree& tree) {
  return absl::StrFormat("%s, busiest link %.4g us (%d message%s)",
                         Figure(tree.tree, tree.predicted), tree.busiest.us, tree.busiest.packets,
                         tree.busiest.packets == 1 ? "" : "s");
}

// ", 0.52 us more than the fastest tree, ...": what it could have had, figure by figure.
std::string GivesUp(absl::Span<const TradeTree> trees, const TradeFigures& taken) {
  TradeFigures least = taken;
  for (const TradeTree& tree : trees) {
    const TradeFigures figures = tree.figures();
    least.total_us = std::min(least.total_us, figures.total_us);
    least.entries = std::min(least.entries, figures.entries);
    least.busiest_link_us = std::min(least.busiest_link_us, figures.busiest_link_us);
  }
  std::string words;
  const auto add = [&](std::string text) {
    absl::StrAppend(&words, words.empty() ? "; gives up " : ", ", std::move(text));
  };
  if (taken.total_us > least.total_us) {
    add(absl::StrFormat("%.2f us against the fastest tree", taken.total_us - least.total_us));
  }
  if (taken.entries > least.entries) {
    add(absl::StrFormat("%d of %d entries against the tree with fewest",
                        taken.entries - least.entries, taken.entries));
  }
  if (taken.busiest_link_us > least.busiest_link_us) {
    add(absl::StrFormat("%.4g us on its busiest link against the tree that is lightest there",
                        taken.busiest_link_us - least.busiest_link_us));
  }
  return words.empty() ? "; no tree is better in anything" : words;
}

std::string PolicyWords(const TradePolicy& policy) {
  std::string words = absl::StrFormat("latency %g, entries %g, link load %g", policy.latency,
                                      policy.entries, policy.link_load);
  if (policy.max_entries) absl::StrAppend(&words, ", at most ", *policy.max_entries, " entries");
  if (policy.max_busiest_link_us > 0) {
    absl::StrAppend(&words, ", busiest link at most ", policy.max_busiest_link_us, " us");
  }
  return words;
}

void ListTradeoffs(absl::Span<const TradeTree> trees, size_t chosen, TreePlan& plan) {
  for (size_t i = 0; i < trees.size(); ++i) {
    const AggregationTree& tree = trees[i].tree;
    plan.tradeoffs.push_back(
        {trees[i].figures(), tree.type, tree.builder, tree.width, i == chosen});
  }
}

}  // namespace

absl::Status ApplyTrade(const TreeRequest& request, Trade trade, TreePlan& plan) {
  std::vector<TradeFront::Point> points;
  for (size_t i = 0; i < trade.trees.size(); ++i) points.push_back({trade.trees[i].figures(), i});
  size_t chosen = points.size();
  if (request.policy) {
    ASSIGN_OR_RETURN(chosen, ChooseByPolicy(points, *request.policy));
  }
  if (request.list_tradeoffs) ListTradeoffs(trade.trees, chosen, plan);
  if (!request.policy) return absl::OkStatus();
  TradeTree& taken = trade.trees[chosen];
  std::string reason =
      absl::StrCat("by the policy (", PolicyWords(*request.policy), "): ", Describe(taken),
                   GivesUp(trade.trees, taken.figures()), "; ", trade.trees.size(), " of ",
                   trade.evaluated, " trees are beaten by none; without a policy: ", plan.reason);
  plan.reason = std::move(reason);
  static_cast<TimedTree&>(plan) = std::move(taken);
  return absl::OkStatus();
}

}  // namespace coppice
