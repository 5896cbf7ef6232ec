// The closed forms of the cost model (Chen 2024, 2.2, 3.1 and 5, formulas (1)-(9)), which assume
// complete trees and equal routes. For the static table and for bounding widths; what one tree
// costs on one fabric is tree_metrics.h, which agrees with them where their assumptions hold.
//
// One level of a tree costs a + b k, k its width (formula (5)):
//
//   up    a = links * l + phi(S_up)   [+ S_up / B]       b = max(theta + S* gamma, S_up / B)
//   down  a = links * l + phi(S_down) [+ S_down / B]     b = max(c_send, S_down / B)
//
// links = delta for type I, 1 for type II, whose delta / 2 levels are delta / 2 links. B is the
// profile's port_gbps, 0 = without limit (the paper's forms); the terms in brackets are those of a
// profile whose phi does not contain them. Sums over directions and mixes of sizes are of the same
// form, so a and b add.
//
//   T_I(k) = T_init + (a + b k) ln P / ln k + c k   (2) with (3), (7)     k = 1 or P < 2: no levels
//   T_II   = T_init + log_d P * (a + b d) + c d,  d = P^(2/delta)         (2) with (4), (8)
//
// c is the paper's 0 for payloads of one packet. Longer ones are pipelined (spec: beyond 3): a and
// b are of their first packet, and every other one follows a slowest stage later, the b k of one
// node: c = (packets - 1) * b, of the slower direction where both are under way at once, else of
// each. That a NIC's port also carries what it exchanges with its own parent is left to the exact
// walk.
#ifndef COPPICE_DAEMON_TREE_CLOSED_FORM_H_
#define COPPICE_DAEMON_TREE_CLOSED_FORM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_spec.h"

namespace coppice {

// a and b of one level, and c.
struct LevelCost {
  double once_us = 0;
  double per_child_us = 0;
  double stage_per_child_us = 0;  // once a tree, whatever its levels
  LevelCost& operator+=(const LevelCost& other);
};

LevelCost AggregateLevel(const CostProfile& profile, TreeType type, const Payload& payload);
LevelCost DistributeLevel(const CostProfile& profile, TreeType type, const Payload& payload);
LevelCost BothWays(const CostProfile& profile, TreeType type, const Payload& payload);
// The same as the weighted mean over a mix of sizes.
LevelCost BothWays(const CostProfile& profile, TreeType type, const CollectiveMix& mix);

// (a + b k) ln P / ln k + c k for k >= 2; 0 for fewer than two members.
double LevelsUs(const LevelCost& level, uint32_t members, double width);

// Where LevelsUs is least: the root k* of k (ln k - 1) + (c / b) k (ln k)^2 / ln P = a / b, which
// is (6) if c is 0, and then at least e. Infinite if b and c are 0. By bisection.
double IdealWidth(const LevelCost& level, uint32_t members);

// Widths whose LevelsUs is within a tolerance of the least.
struct WidthInterval {
  uint32_t min = 2, best = 2, max = 2;
};
// Over whole widths from 2 to `most` (taken as 2 if it is less). `tolerance_us` is for all that
// `level` adds up: the paper's epsilon for one direction, twice that for both.
WidthInterval WidthsWithin(const LevelCost& level, uint32_t members, double tolerance_us,
                           uint32_t most);

// d = P^(2/delta), at least 2 for two members or more.
double TypeIIWidth(const CostProfile& profile, uint32_t members);

double TypeIUs(const CostProfile& profile, uint32_t members, double width, const Payload& payload);
double TypeIIUs(const CostProfile& profile, uint32_t members, const Payload& payload);

// Which type and width an operation of some size takes (the paper's table 3). Type II where
// F = T_I(best) - T_II > 0 (9).
struct TypeChoice {
  Operation operation = Operation::kBarrier;
  uint64_t min_bytes = 0, max_bytes = 0;  // the class; evaluated at max_bytes
  TreeType type = TreeType::kTypeI;
  WidthInterval widths;  // of type I
  double type_i_us = 0, type_ii_us = 0;
};
// One row for Barrier, one for each size class of the other operations, sizes ascending. O(rows *
// NIC degree). INVALID_ARGUMENT: fewer than two members.
absl::StatusOr<std::vector<TypeChoice>> StaticTypeTable(const CostProfile& profile,
                                                        uint32_t members);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_CLOSED_FORM_H_
