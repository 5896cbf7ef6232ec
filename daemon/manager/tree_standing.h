// How a granted tree stands on a published fabric: as it was, on other routes, or not at all.
//
//   a node, a link that an edge crossed, or a cable of the physical tree gone,
//   or an edge that no links join                      --> broken: to be planned anew
//   everything there, but edges cross other links,
//   or as many as before no longer                     --> moved: the same tree with other lengths
//   otherwise                                          --> unchanged
//
// Where an edge has no route because the forwarding tables are not yet made for the links that are
// left, the tree is judged by shortest paths over these instead: the subnet manager will find some
// route. The next tables that lead there judge it again.
//
// A function of values; takes no lock.
#ifndef COPPICE_DAEMON_MANAGER_TREE_STANDING_H_
#define COPPICE_DAEMON_MANAGER_TREE_STANDING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/manager/fabric_view.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/link_use.h"
#include "db/store.h"

namespace coppice {

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
  TreeStanding Judge(const JobRecord& job, const TreeRecord& record,
                     std::optional<RouteKind> route_kind);

 private:
  std::string LostNodes(const JobRecord& job, const TreeRecord& record,
                        const AggregationTree& tree) const;
  std::string LostLinks(const TreeRecord& record) const;
  std::string NameOfLink(int64_t id) const;
  // Over the routes of that snapshot. False: an edge has none.
  bool Route(const Snapshot& snapshot, const TreeRecord& record, const AggregationTree& tree,
             const PhysicalTree& physical);
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
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TREE_STANDING_H_
