// Evens out a planned batch as a whole, while balance.cc takes one link after another: each tree in
// turn is planned anew where links cost the more the nearer they are to the most loaded one.
#ifndef COPPICE_DAEMON_TREE_BATCH_REROUTE_H_
#define COPPICE_DAEMON_TREE_BATCH_REROUTE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/offers.h"
#include "daemon/tree/batch/shapes.h"
#include "daemon/tree/batch/spread_paths.h"
#include "daemon/tree/batch/state.h"

namespace coppice {

// Which roots are worth a try for a communicator: those of one distance, the ones nearest to all of
// its ranks first, and by turns, so that trying again and again tries others. Builds no trees.

class RootCandidates final {
 public:
  // All of them must outlive this; `state` is read whenever roots are put forward.
  RootCandidates(const Snapshot& snapshot, const BatchShapes& shapes, const BatchState& state);

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

class TreeRerouter final {
 public:
  // All of them must outlive this; trees that are planned count with `offers`.
  TreeRerouter(const Snapshot& snapshot, const BatchShapes& shapes, RootReach reach,
               BatchState& state, BatchOffers& offers, RootCandidates& candidates);

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
  RootCandidates& candidates_;
  PathSpreader spreader_;
  std::vector<uint32_t> servers_;   // [switch] degrees of those that serve in the tree at hand
  std::vector<SwitchIndex> found_;  // switches to choose from
  size_t turn_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_REROUTE_H_
