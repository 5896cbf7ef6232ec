// The trade between time, entries and the busiest link: the trees of one communicator that none
// beats in all three (spec: trees, 4, "the trade").
//
// Lifting children saves entries but sends more messages over the links above; serving in more
// switches costs entries, spreads the work and unburdens links; type I takes no entry at all.
//
// What is tried
// - of type I, the fastest tree of each builder;
// - of type II, up to TradeBounds::roots, the nearest to the members first, then those one hop
//   farther, and per root and its physical tree sets of serving switches: all of them where they
//   are few enough for the root's share of the trees that may be evaluated; else from the least set
//   up, adding one switch at a time, and from all switches down, taking one away at a time, always
//   the one that is best for time or, a second time, for the busiest link, by the exact evaluation;
//   else, where a communicator is too large even for that, adding whole levels of the physical
//   tree.
//
// So the front is exact for these roots on small fabrics, and a sample of it on large ones.
#ifndef COPPICE_DAEMON_TREE_TRADE_H_
#define COPPICE_DAEMON_TREE_TRADE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/tree/trade_front.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

struct TradeBounds {
  size_t roots = 16;
  bool all_sets = true;  // false: chains, however few sets there are
  size_t trees = 2048;   // of type II that are evaluated
  // In them, together; fewer where packets of long messages are followed, but at least kMinTrees
  // trees whatever this says.
  uint64_t ranks = 1ull << 21;
  static constexpr size_t kMinTrees = 32;
};

struct TradeTree : TimedTree {
  BusiestLink busiest;
  TradeFigures figures() const;
};

struct Trade {
  std::vector<TradeTree> trees;  // that none beats, by time, then entries
  size_t evaluated = 0;          // trees looked at
};

// `planned` is what PlanTree takes without a policy; the front is never empty, because it is tried,
// too. Load as in BuildType2. NOT_FOUND: an edge of `planned` has no route.
absl::StatusOr<Trade> FindTrade(const Snapshot& snapshot, const Snapshot& predicting,
                                const CostProfile& profile,
                                absl::Span<const SwitchCapacity> capacity,
                                const TreeRequest& request, const MemberPlaces& places,
                                const TreePlan& planned, const TradeBounds& bounds = {});

// What request.policy takes replaces `plan`, its reason says what that gives up; without a policy
// the plan stays. Fills tradeoffs if they are asked for. Errors as ChooseByPolicy.
absl::Status ApplyTrade(const TreeRequest& request, Trade trade, TreePlan& plan);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TRADE_H_
