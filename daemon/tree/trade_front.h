// Trees that none beats, and which of them a policy takes. Works on figures alone: knows no tree,
// no fabric.
//
//   entries
//     ^  x                 x  in the front: better in time or entries (or on links) than
//     |     o                 every other
//     |  .  x   o          o  beaten by an x in all of them
//     |            x
//     +---------------> time
#ifndef COPPICE_DAEMON_TREE_TRADE_FRONT_H_
#define COPPICE_DAEMON_TREE_TRADE_FRONT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

struct TradeFigures {
  double total_us = 0;
  uint32_t entries = 0;
  double busiest_link_us = 0;
  uint32_t busiest_link_packets = 0;  // not compared
};

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

// INVALID_ARGUMENT names a weight that is negative or not finite, the limit that is, or says that
// all weights are 0.
absl::Status CheckPolicy(const TradePolicy& policy);

// The position of the point that the policy takes: of those within its limits the one with the
// least weighted sum, each figure scaled to 0 (least of them) .. 1 (greatest); of equal sums the
// first. `points` is not empty. FAILED_PRECONDITION: no point is within the limits; names the limit
// and the least that can be had.
absl::StatusOr<size_t> ChooseByPolicy(absl::Span<const TradeFront::Point> points,
                                      const TradePolicy& policy);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TRADE_FRONT_H_
