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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

// Trees that none beats, and which of them a policy takes, by their figures alone:
//
//   entries
//     ^  x                 x  in the front: better in time or entries (or on links) than
//     |     o                 every other
//     |  .  x   o          o  beaten by an x in all of them
//     |            x
//     +---------------> time

// At least as good in all three; figures within 1e-9 of each other count as equal.
bool IsNoWorse(const TradeFigures& a, const TradeFigures& b);

// Ids of what none beats. Of those alike in all three, the first.
class TradeFront final {
 public:
  struct Point {
    TradeFigures figures;
    size_t id = 0;
  };
  // False: some point is no worse. Otherwise what the new one beats goes. O(points).
  bool Offer(const TradeFigures& figures, size_t id);
  absl::Span<const Point> points() const { return points_; }
  // By time, then entries.
  void Sort();

 private:
  std::vector<Point> points_;
};

// The position of the point that the policy takes: of those within its limits the one with the
// least weighted sum, each figure scaled to 0 (least of them) .. 1 (greatest); of equal sums the
// first. `points` is not empty. FAILED_PRECONDITION: no point is within the limits; names the limit
// and the least that can be had.
absl::StatusOr<size_t> ChooseByPolicy(absl::Span<const TradeFront::Point> points,
                                      const TradePolicy& policy);

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
// too. NOT_FOUND: an edge of `planned` has no route.
absl::StatusOr<Trade> FindTrade(const PlanInput& input, const TreePlan& planned,
                                const TradeBounds& bounds = {});

// What request.policy takes replaces `plan`, its reason says what that gives up; without a policy
// the plan stays. Fills tradeoffs if they are asked for. Errors as ChooseByPolicy.
absl::Status ApplyTrade(const TreeRequest& request, Trade trade, TreePlan& plan);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TRADE_H_
