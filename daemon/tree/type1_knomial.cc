// k-nomial trees (Chen 2024, 3.2.2, definition 8, algorithm 1): T_n is k trees T_(n-1), the roots
// of k-1 of them below the root of the first. Ranks are numbered depth first.
//
//   k = 2, n = 3:   0 --+-- 4 --+-- 6 --- 7
//                       |       +-- 5            parent(r) = r with its lowest non-zero base-k
//                       +-- 2 ----- 3            digit set to 0; children of r = r + d * k^j below
//                       +-- 1                    that digit, d = 1..k-1
//
//   height = most non-zero digits of a rank
//
// Unbalanced: while the lower levels still work, the upper ones already take packets. O(P).
#include "daemon/base/status_macros.h"
#include "daemon/tree/type1.h"
#include "daemon/tree/type1_ranks.h"

namespace coppice {

absl::StatusOr<AggregationTree> BuildKnomial(const Fabric& fabric, Members members, uint32_t width,
                                             uint32_t nic_degree) {
  AggregationTree tree;
  ASSIGN_OR_RETURN(tree, BareTypeITree(fabric, members, TreeBuilder::kKnomial, width));
  for (uint32_t rank = 1; rank < tree.rank_count; ++rank) {
    tree.parents[rank] = static_cast<int32_t>(KnomialParent(rank, width));
  }
  RETURN_IF_ERROR(CheckNicDegree(tree, nic_degree));
  return tree;
}

}  // namespace coppice
