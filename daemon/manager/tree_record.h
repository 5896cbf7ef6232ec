// From the planner's tree to the row that the store keeps and that answers are made of: names
// instead of indices, the links that the tree's edges cross.
#ifndef COPPICE_DAEMON_MANAGER_TREE_RECORD_H_
#define COPPICE_DAEMON_MANAGER_TREE_RECORD_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_plan.h"
#include "db/store.h"

namespace coppice {

// Fills everything in `record` that follows from the plan: fabric_version, type, builder, width,
// height, radius, parents, switches, edge lengths, physical, links, predictions, reason and
// alternatives. Leaves ids, request, ranks, spec and time. `link_ids` is [link],
// `uses` what the plan's messages cross, by channel. O(nodes + channels).
void FillFromPlan(const Snapshot& snapshot, absl::Span<const int64_t> link_ids,
                  absl::Span<const ChannelUse> uses, TreePlan plan, TreeRecord& record);

// A physical tree as TreeRecord::physical has it: pairs (GUID, position of the parent + 1, 0 for
// the root), parents before children; first the switches by node GUID, then the members' ports by
// port GUID, each port once. So the number of switches is the number of pairs less the number of
// distinct ports of the ranks. In `tree` parents come before their children, and endpoints have
// none.
void FillPhysical(const Fabric& fabric, const PhysicalTree& tree, std::vector<uint64_t>& pairs);

// A granted tree as values of the planner again: its record's names as places of a fabric, which
// may have lost some of them.

// Of nodes that the fabric has lost.
inline constexpr VertexIndex kGoneVertex{UINT32_MAX};

AggregationTree PlaceTree(const Fabric& fabric, const JobRecord& job, const TreeRecord& record);

// The record's physical tree. A vertex that is gone, or not cabled to its parent
// any more, has no channel. `link_ids` is [link]: of several cables that whose link the tree
// crosses is taken.
PhysicalTree PlacePhysical(const Fabric& fabric, absl::Span<const int64_t> link_ids,
                           const TreeRecord& record);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TREE_RECORD_H_
