// Room for a communicator whose roots are full: those that are placed already move away, one for
// another in a chain, until somebody finds a switch that is still free.
#ifndef COPPICE_DAEMON_TREE_BATCH_REPAIR_H_
#define COPPICE_DAEMON_TREE_BATCH_REPAIR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/tree/batch/state.h"
#include "daemon/tree/batch/tree_builder.h"

namespace coppice {

class BatchRepair final {
 public:
  // All must outlive this.
  BatchRepair(const BatchShapes& shapes, RootReach reach, BatchState& state, BatchOffers& offers);

  // Admits as many more as it can: first over nearest roots alone, then over what `reach` allows.
  // Nobody who is placed ends up without a tree.
  void AdmitMore();

  // Gives up one communicator where two others fit in its place.
  void Trade();

  // Trees with fewer entries or nearer roots, also by moving others away, as long as all together
  // take fewer.
  void SaveEntries();

 private:
  bool Settle(uint32_t communicator, uint32_t depth);
  bool MoveInto(uint32_t communicator, SwitchIndex root, uint32_t depth);
  bool HoldAll(const BatchTree& tree, uint32_t depth, std::vector<SwitchIndex>& held);
  bool FreeOne(SwitchIndex s, uint32_t depth);
  bool PlaceDirectly(uint32_t communicator);
  bool MaySave(uint32_t communicator);
  bool SaveOn(uint32_t communicator);
  void Block(SwitchIndex s);
  void UnblockAll();
  const BatchShape& ShapeOf(uint32_t communicator) const {
    return shapes_.shapes[shapes_.shape_of[communicator]];
  }

  const BatchShapes& shapes_;
  const RootReach reach_;
  BatchState& state_;
  BatchOffers& offers_;
  bool may_go_farther_ = false;
  std::vector<uint32_t> open_degrees_;  // [switch] limit; 0 if nobody there could be moved
  std::vector<SwitchIndex> blocked_;    // where open_degrees_ was set to 0
  // [shape] BatchOffers::LeastAlone, 0 if no tree to a nearest root works; nullopt: not asked yet.
  std::vector<std::optional<uint32_t>> least_alone_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_REPAIR_H_
