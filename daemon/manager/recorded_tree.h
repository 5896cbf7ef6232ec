// A granted tree as values of the planner again: its record's names as places of a fabric, which
// may have lost some of them.
#ifndef COPPICE_DAEMON_MANAGER_RECORDED_TREE_H_
#define COPPICE_DAEMON_MANAGER_RECORDED_TREE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/tree/tree.h"
#include "db/store.h"

namespace coppice {

// Of nodes that the fabric has lost.
inline constexpr VertexIndex kGoneVertex{UINT32_MAX};

AggregationTree PlaceTree(const Fabric& fabric, const JobRecord& job, const TreeRecord& record);

// The record's physical tree (form: manager.h). A vertex that is gone, or not cabled to its parent
// any more, has no channel. `link_ids` is [link]: of several cables that whose link the tree
// crosses is taken.
PhysicalTree PlacePhysical(const Fabric& fabric, absl::Span<const int64_t> link_ids,
                           const TreeRecord& record);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_RECORDED_TREE_H_
