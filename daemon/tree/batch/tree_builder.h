// One candidate of one shape: the physical tree to a root over switches, and the fewest of its
// switches that must serve, given the entries that are left.
#ifndef COPPICE_DAEMON_TREE_BATCH_TREE_BUILDER_H_
#define COPPICE_DAEMON_TREE_BATCH_TREE_BUILDER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/shapes.h"
#include "daemon/tree/batch/state.h"

namespace coppice {

// Among neighbours that are nearer to the root, which one a switch sends to.
enum class Steering : uint8_t {
  kSpread,  // over the least loaded channel: best where the root serves alone
  kGather,  // to the one that collects most: one serving switch then absorbs most
  kFill,    // likewise until it has as many packets as it can serve, then to the next
  kVia,     // as many as one can serve by way of each neighbour of the root that can serve
  kRefine,  // fill those that can serve, spread the rest over all others
};

// Not thread-safe: reuses its arrays from one tree to the next.
class BatchTreeBuilder final {
 public:
  // `free_entries` is [switch]; it and `loads` are read whenever a tree is built.
  BatchTreeBuilder(const Snapshot& snapshot, absl::Span<const int32_t> free_entries,
                   const LinkLoads& loads);

  // Fills in `tree.physical`. `degrees` is [switch], how many children each could serve, 0 for
  // none. False: the routes of some leaf do not reach the root.
  bool BuildPhysical(const BatchShape& shape, SwitchIndex root, Steering steering,
                     absl::Span<const uint32_t> degrees, BatchTree& tree);
  // Chooses who serves in the tree that was built last and counts packets. False: not with
  // `degrees`; in_the_way() then names the switches that had to forward.
  bool ChooseServers(absl::Span<const uint32_t> degrees, BatchTree& tree);

  // Whether the last physical tree could have been another one.
  bool had_choice() const { return had_choice_; }
  const std::vector<SwitchIndex>& in_the_way() const { return in_the_way_; }

 private:
  struct Step {
    SwitchIndex at, next;
    ChannelIndex up;
  };

  bool Route(const BatchShape& shape, SwitchIndex root);
  bool Steer(const BatchShape& shape, SwitchIndex root, Steering steering);
  void AssignWays(const BatchShape& shape, SwitchIndex root);
  bool IsOnTheWay(SwitchIndex at, SwitchIndex to) const;
  bool StepTowards(SwitchIndex at, SwitchIndex root, absl::Span<const uint8_t> row,
                   Steering steering, Step& step);
  uint64_t Cost(SwitchIndex to, ChannelIndex over, uint32_t packets, Steering steering) const;
  void Meet(SwitchIndex s, uint32_t packets);
  uint32_t Leaving(SwitchIndex s) const;
  void Lay(const BatchShape& shape, SwitchIndex root, SwitchTree& tree);
  void Forget();
  void Prefer(const SwitchTree& tree);

  const Snapshot& snapshot_;
  const Fabric& fabric_;
  const absl::Span<const int32_t> free_entries_;
  absl::Span<const uint32_t> degrees_;  // of the tree at hand
  const LinkLoads& loads_;
  bool had_choice_ = false;
  uint32_t ranks_ = 0;  // of the shape at hand

  std::vector<uint32_t> packets_;                 // [switch] met so far
  std::vector<int32_t> position_;                 // [switch] in the tree; kNotMet, kMet
  std::vector<uint32_t> way_;                     // [switch] in ways_ for kVia; its size: any
  std::vector<SwitchIndex> ways_;                 // neighbours of the root
  std::vector<SwitchIndex> met_;                  // where position_ is not kNotMet
  std::vector<std::vector<SwitchIndex>> levels_;  // [hops to the root]
  std::vector<Step> steps_;                       // children before parents
  std::vector<uint32_t> tree_degrees_, preference_;
  std::vector<SwitchIndex> in_the_way_;
};

// packets[v] of a tree whose physical tree and serving switches are known: what a vertex sends up
// if each serving one takes as many as it may, lowest first.
void CountPackets(absl::Span<const uint32_t> degrees, BatchTree& tree);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_TREE_BUILDER_H_
