// Which roots are worth a try for a communicator: those of one distance, the ones nearest to all of
// its ranks first, and by turns, so that trying again and again tries others. Builds no trees.
#ifndef COPPICE_DAEMON_TREE_BATCH_ROOT_MENU_H_
#define COPPICE_DAEMON_TREE_BATCH_ROOT_MENU_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/shapes.h"
#include "daemon/tree/batch/state.h"

namespace coppice {

class RootMenu final {
 public:
  // All of them must outlive this; `state` is read whenever roots are put forward.
  RootMenu(const Snapshot& snapshot, const BatchShapes& shapes, const BatchState& state);

  // Hops from roots to the farthest rank, least first, as far as `most_extra` more than from the
  // nearest roots. Stands until another shape is asked for.
  absl::Span<const uint32_t> Distances(uint32_t shape, uint32_t most_extra);

  // Up to `wanted` switches that can serve now and are `hops` away: first the one with fewest hops
  // to all ranks together through which least is promised, then others that are nearly as near, by
  // turns. Stands until the next call.
  absl::Span<const SwitchIndex> PutForward(uint32_t shape, uint32_t hops, size_t wanted);

 private:
  struct Root {
    uint32_t hops;        // to the farthest rank
    uint64_t total_hops;  // to all ranks
    SwitchIndex index;
  };
  struct Roots {
    std::vector<Root> all;            // by hops, total_hops, index
    std::vector<uint32_t> distances;  // ascending
  };

  const Roots& RootsOf(uint32_t shape);
  bool IsBefore(const Root& a, const Root& b) const;

  const Snapshot& snapshot_;
  const BatchShapes& shapes_;
  const BatchState& state_;
  const size_t most_lists_;
  absl::flat_hash_map<uint32_t, Roots> roots_;  // of shapes lately asked for
  std::vector<Root> near_;
  std::vector<SwitchIndex> forward_;
  size_t turn_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_ROOT_MENU_H_
