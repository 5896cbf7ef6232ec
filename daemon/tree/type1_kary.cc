// k-ary trees (Chen 2024, 3.2.1, definition 7): ranks numbered breadth first, every inner node but
// the last with k children. Balanced, but blind to the fabric.
//
//   k = 2:   0 --+-- 1 --+-- 3
//                |       +-- 4        parent(r) = (r - 1) / k
//                +-- 2 ----- 5
//
// O(P).
#include "daemon/base/status_macros.h"
#include "daemon/tree/type1.h"
#include "daemon/tree/type1_ranks.h"

namespace coppice {

absl::StatusOr<AggregationTree> BuildKary(const Fabric& fabric, Members members, uint32_t width,
                                          uint32_t nic_degree) {
  AggregationTree tree;
  ASSIGN_OR_RETURN(tree, BareTypeITree(fabric, members, TreeBuilder::kKary, width));
  for (uint32_t rank = 1; rank < tree.rank_count; ++rank) {
    tree.parents[rank] = static_cast<int32_t>((rank - 1) / width);
  }
  RETURN_IF_ERROR(CheckNicDegree(tree, nic_degree));
  return tree;
}

}  // namespace coppice
