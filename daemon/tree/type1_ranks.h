// What the three type I builders share: the request's checks, the bare tree and the degree limit.
#ifndef COPPICE_DAEMON_TREE_TYPE1_RANKS_H_
#define COPPICE_DAEMON_TREE_TYPE1_RANKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/tree/tree.h"

namespace coppice {

// A type I tree over `members` in which every rank is still without parent. INVALID_ARGUMENT: no
// members, a member that is no endpoint of `fabric`, or a width below 2 for more than one member.
absl::StatusOr<AggregationTree> BareTypeITree(const Fabric& fabric, Members members,
                                              TreeBuilder builder, uint32_t width);

// RESOURCE_EXHAUSTED if a rank has more than `nic_degree` children: names the one with the most
// (the lowest of them), its children and the limit. O(ranks).
absl::Status CheckNicDegree(const AggregationTree& tree, uint32_t nic_degree);

// Least n with k^n >= count; k >= 2, count >= 1.
uint32_t DigitsFor(uint64_t count, uint32_t width);

// The k-nomial parent of a slot: its lowest non-zero base-k digit set to 0. slot > 0.
//   k = 4: 0 <- 1, 2, 3, 4, 8, 12, 16    4 <- 5, 6, 7    16 <- 17, 18, 19, 20, 24, 28
uint64_t KnomialParent(uint64_t slot, uint32_t width);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE1_RANKS_H_
