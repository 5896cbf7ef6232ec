// How a granted tree stands on a published fabric: as it was, on other routes, or not at all.
//
//   a node, a link that an edge crossed, or a cable of the physical tree gone,
//   or an edge without a route                         --> broken: to be planned anew
//   everything there, but edges cross other links,
//   or as many as before no longer                     --> moved: the same tree with other lengths
//   otherwise                                          --> unchanged
//
// A function of values; takes no lock.
#ifndef COPPICE_DAEMON_MANAGER_TREE_STANDING_H_
#define COPPICE_DAEMON_MANAGER_TREE_STANDING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/manager/manager.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/link_use.h"
#include "db/store.h"

namespace coppice {

enum class Standing : uint8_t { kUnchanged, kMoved, kBroken };

struct TreeStanding {
  Standing standing = Standing::kUnchanged;
  std::string lost;            // kBroken: what, in words
  bool has_lost_rank = false;  // kBroken: the port of a member is gone
  // kMoved: the next revision, with everything that follows from the routes.
  std::shared_ptr<const TreeRecord> moved;
};

// Judges many trees against one view. Not thread-safe.
class StandingJudge {
 public:
  // `before` may be null; it gives links that are gone their names.
  StandingJudge(const FabricView& view, const FabricView* before, const CostProfile& profile);

  // O(nodes + links on the edges' routes).
  TreeStanding Judge(const JobRecord& job, const TreeRecord& record);

 private:
  std::string LostNodes(const JobRecord& job, const TreeRecord& record,
                        const AggregationTree& tree) const;
  std::string LostLinks(const TreeRecord& record) const;
  std::string NameOfLink(int64_t id) const;
  TreeStanding Compare(const TreeRecord& record, const AggregationTree& tree);

  const FabricView& view_;
  const FabricView* const before_;
  const CostProfile& profile_;
  std::vector<int64_t> present_;  // ids, ascending
  absl::flat_hash_map<int64_t, LinkIndex> before_links_;
  LinkUseCounter counter_;
  std::vector<ChannelUse> uses_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TREE_STANDING_H_
