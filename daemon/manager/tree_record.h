// From the planner's tree to the row that the store keeps and that answers are made of: names
// instead of indices, text instead of enumerations, the links that the tree's edges cross.
#ifndef COPPICE_DAEMON_MANAGER_TREE_RECORD_H_
#define COPPICE_DAEMON_MANAGER_TREE_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/planner.h"
#include "daemon/tree/tree.h"
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

// A granted tree as values of the planner again: its record's names as places of a fabric, which
// may have lost some of them.

// Of nodes that the fabric has lost.
inline constexpr VertexIndex kGoneVertex{UINT32_MAX};

AggregationTree PlaceTree(const Fabric& fabric, const JobRecord& job, const TreeRecord& record);

// The record's physical tree (form: manager.h). A vertex that is gone, or not cabled to its parent
// any more, has no channel. `link_ids` is [link]: of several cables that whose link the tree
// crosses is taken.
PhysicalTree PlacePhysical(const Fabric& fabric, absl::Span<const int64_t> link_ids,
                           const TreeRecord& record);

// The two lists that a tree's record keeps as JSON text (form: manager.h): message sizes, and what
// else was considered. Written here and read here, because every answer about a tree reads them: a
// general JSON library took longer over them than the rest of the answer.
//
// The readers take only what the writers make. Text that somebody edited by hand may be otherwise:
// it reads as an empty list, since a listing of trees must not fail for it.

// [[8,1],[1048576,0.5]]
std::string SizesJson(absl::Span<const SizeShare> sizes);
std::vector<SizeShare> ParseSizes(absl::string_view json);

// [{"type":"I","builder":"kary","width":4,"total_us":9.5,"why_not":"..."},...]; times to six
// significant digits.
std::string AlternativesJson(absl::Span<const Alternative> alternatives);
std::vector<Alternative> ParseAlternatives(absl::string_view json);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TREE_RECORD_H_
