// From the planner's tree to the row that the store keeps and that answers are made of: names
// instead of indices, text instead of enumerations, the links that the tree's edges cross.
#ifndef COPPICE_DAEMON_MANAGER_TREE_RECORD_H_
#define COPPICE_DAEMON_MANAGER_TREE_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/planner.h"
#include "db/store.h"

namespace coppice {

// Fills everything in `record` that follows from the plan: fabric_version, type, builder, width,
// height, radius, parents, switches, edge lengths, physical, links, predictions, reason and
// alternatives. Leaves ids, request, ranks, operation, sizes and time. `link_ids` is [link],
// `uses` what the plan's messages cross, by channel. O(nodes + channels).
void FillFromPlan(const Snapshot& snapshot, absl::Span<const int64_t> link_ids,
                  absl::Span<const ChannelUse> uses, TreePlan plan, TreeRecord& record);

// A physical tree as TreeRecord::physical has it; its parents come before their children, and its
// endpoints have none.
void FillPhysical(const Fabric& fabric, const PhysicalTree& tree, std::vector<uint64_t>& pairs);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TREE_RECORD_H_
