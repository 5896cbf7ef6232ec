// From the planner's tree to the row that the store keeps and that answers are made of: names
// instead of indices, text instead of enumerations, the links that the tree's edges cross.
#ifndef COPPICE_DAEMON_MANAGER_TREE_RECORD_H_
#define COPPICE_DAEMON_MANAGER_TREE_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/planner.h"
#include "db/store.h"

namespace coppice {

// Memory that one thread after another reuses to make records.
struct RecordScratch {
  std::vector<ChannelIndex> path;
  std::vector<uint64_t> link_marks;    // one bit per link; all zero between calls
  std::vector<uint32_t> marked_words;  // of link_marks that are not zero
};

// Fills everything in `record` that follows from the plan: fabric_version, type, builder, width,
// height, radius, parents, switches, edge lengths, physical, links, predictions, reason and
// alternatives. Leaves ids, request, ranks, operation, sizes and time. `link_ids` is [link].
// NOT_FOUND: an edge without a route. O(nodes + links on the edges' routes).
absl::Status FillFromPlan(const Snapshot& snapshot, absl::Span<const int64_t> link_ids,
                          TreePlan plan, RecordScratch& scratch, TreeRecord& record);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TREE_RECORD_H_
