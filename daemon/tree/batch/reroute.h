// Evens out a planned batch as a whole, while unload.cc takes one link after another: each tree in
// turn is planned anew where links cost the more the nearer they are to the most loaded one.
#ifndef COPPICE_DAEMON_TREE_BATCH_REROUTE_H_
#define COPPICE_DAEMON_TREE_BATCH_REROUTE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/offers.h"
#include "daemon/tree/batch/root_menu.h"
#include "daemon/tree/batch/shapes.h"
#include "daemon/tree/batch/spread_paths.h"
#include "daemon/tree/batch/state.h"

namespace coppice {

class TreeRerouter final {
 public:
  // All of them must outlive this; trees that are planned count with `offers`.
  TreeRerouter(const Snapshot& snapshot, const BatchShapes& shapes, RootReach reach,
               BatchState& state, BatchOffers& offers, RootMenu& menu);

  // Every communicator once, until `offers` is exhausted: nobody takes more entries, the greatest
  // load does not grow, roots do not go farther where `reach` counts that. False: nothing changed,
  // which is always so over fixed routes.
  bool Pass();

  // The same root and servers over other paths; nullopt as PathSpreader.
  std::optional<BatchTree> Spread(uint32_t communicator, const BatchTree& like);

 private:
  struct Search;

  bool Reroute(uint32_t communicator);
  void TryHotSender(Search& search);
  void TryOtherRoot(Search& search);
  void Consider(std::optional<BatchTree> tree, uint32_t extra_hops, Search& search) const;
  std::optional<BatchTree> Build(const BatchShape& shape, SwitchIndex root);
  void SetServers(const BatchTree& like);
  void MoveServer(SwitchIndex from, SwitchIndex to);
  bool FindServers(const BatchShape& shape, SwitchIndex root, size_t count);
  std::optional<SwitchIndex> StepTowards(SwitchIndex at, SwitchIndex root);
  size_t Turn(size_t of);

  const Snapshot& snapshot_;
  const BatchShapes& shapes_;
  const RootReach reach_;
  BatchState& state_;
  BatchOffers& offers_;
  RootMenu& menu_;
  PathSpreader spreader_;
  std::vector<uint32_t> servers_;   // [switch] degrees of those that serve in the tree at hand
  std::vector<SwitchIndex> found_;  // switches to choose from
  size_t turn_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_REROUTE_H_
