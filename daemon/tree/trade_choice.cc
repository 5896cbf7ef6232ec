// What becomes of the front: a list, the tree that the policy takes, and the words for it.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/plan_reason.h"
#include "daemon/tree/trade.h"

namespace coppice {
namespace {

std::string Describe(const TradeTree& tree) {
  return absl::StrFormat("%s, busiest link %.4g us (%d messages)",
                         Figure(tree.tree, tree.predicted), tree.busiest.us, tree.busiest.packets);
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
    const TradeFigures figures = trees[i].figures();
    plan.tradeoffs.push_back({tree.type, tree.builder, tree.width, figures.total_us,
                              figures.entries, figures.busiest_link_us,
                              figures.busiest_link_packets, i == chosen});
  }
}

void Replace(TradeTree&& tree, TreePlan& plan) {
  plan.tree = std::move(tree.tree);
  plan.edges = std::move(tree.edges);
  plan.predicted = tree.predicted;
  plan.physical.reset();
  if (tree.physical != nullptr) plan.physical = *tree.physical;
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
  Replace(std::move(taken), plan);
  return absl::OkStatus();
}

}  // namespace coppice
