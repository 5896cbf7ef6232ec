// From the planner's tree to the row that the store keeps and that answers are made of, back to
// values of the planner, and how such a tree stands on a published fabric.
#ifndef COPPICE_DAEMON_MANAGER_TREE_RECORD_H_
#define COPPICE_DAEMON_MANAGER_TREE_RECORD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/manager/fabric_view.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/link_use.h"
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

// TreeRecord::builder of a forest.
inline constexpr char kForestBuilder[] = "forest";

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

// How a granted tree stands on a published fabric: as it was, on other routes, or not at all.
//
//   a node, a link that an edge crossed, or a cable of the physical tree gone,
//   an edge that no links join, or a node that may not
//   be there in the job's partition (job_ports.h)      --> broken: to be planned anew
//   everything there, but edges cross other links,
//   or as many as before no longer                     --> moved: the same tree with other lengths
//   otherwise                                          --> unchanged
//
// A forest is one: what would move one of its trees breaks all of it, since its trees were chosen
// for how they meet on these routes.
//
// Where an edge has no route because the forwarding tables are behind the links, the tree is judged
// by shortest paths over these instead, and again by the next tables that lead there.
enum class Standing : uint8_t { kUnchanged, kMoved, kBroken };

struct TreeStanding {
  Standing standing = Standing::kUnchanged;
  std::string lost;              // kBroken: what, in words
  std::vector<Guid> lost_ports;  // kBroken: of members that are not in the fabric
  RouteKind route_kind = RouteKind::kShortestPath;  // by which it was judged
  // kMoved: the next revision, with everything that follows from the routes.
  std::shared_ptr<const TreeRecord> moved;
};

// Judges many trees against one view. Not thread-safe.
class StandingJudge {
 public:
  // `before` may be null; it gives links that are gone their names. `survivors` is the snapshot of
  // `view` with shortest paths for routes.
  StandingJudge(const FabricView& view, const FabricView* before, const Snapshot& survivors,
                const CostProfile& profile);

  // `route_kind`: of the routes that the record's lengths are of, where that is known; a tree that
  // is on routes of another kind now has moved. O(nodes + links on the edges' routes).
  // `partition`: the job's; an error breaks the tree.
  TreeStanding Judge(const JobRecord& job, const absl::StatusOr<PartitionNum>& partition,
                     const TreeRecord& record, std::optional<RouteKind> route_kind);

 private:
  std::string LostNodes(const JobRecord& job, const TreeRecord& record,
                        const AggregationTree& tree) const;
  std::string LostLinks(const TreeRecord& record) const;
  std::string NameOfLink(int64_t id) const;
  // Over the routes of that snapshot. False: an edge has none.
  bool Route(const Snapshot& snapshot, const TreeRecord& record, const AggregationTree& tree,
             const PhysicalTree& physical);
  // Of all trees of the record.
  absl::Status CheckPartition(const TreeRecord& record, const AggregationTree& tree) const;
  TreeStanding Compare(const Snapshot& snapshot, const TreeRecord& record,
                       const AggregationTree& tree, std::optional<RouteKind> route_kind);

  const FabricView& view_;
  const FabricView* const before_;
  const Snapshot& survivors_;
  const CostProfile& profile_;
  std::vector<int64_t> present_;  // ids, ascending
  absl::flat_hash_map<int64_t, LinkIndex> before_links_;
  LinkUseCounter counter_;
  std::vector<ChannelUse> uses_;
  absl::Status routed_;
  PartitionNum partition_;  // of the job at hand
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TREE_RECORD_H_
