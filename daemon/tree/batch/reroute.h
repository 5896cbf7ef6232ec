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
#include "daemon/tree/batch/state.h"
#include "daemon/tree/batch/tree_builder.h"

namespace coppice {

// The physical tree of one communicator when it is known who serves: path by path over the least
// loaded links, to whichever server has room. Not thread-safe: reuses its arrays.
class PathSpreader final {
 public:
  // `loads` is read whenever a tree is built, without that tree's own packets.
  PathSpreader(const Snapshot& snapshot, const LinkLoads& loads);

  // `degrees` is [switch]: how many children each server may have, 0 for who must not serve.
  // Servers that would have one child do not serve. nullopt: the root must not serve or would have
  // one child, not so many ranks found room, some leaf does not reach it, or routes are fixed:
  // there nothing can be spread. O(channels of the switches on shortest paths, times servers).
  std::optional<BatchTree> Build(const BatchShape& shape, SwitchIndex root,
                                 absl::Span<const uint32_t> degrees);

  // Prices are for a batch whose most loaded link carries so much; 0 until then.
  void set_most(uint32_t most) { most_ = most; }
  // What a tree's packets cost, those on the same link one on top of another.
  uint64_t PriceOf(const BatchTree& tree) const;

 private:
  struct Node {
    uint64_t cost = 0;      // from here to a server with room
    uint32_t valued = 0;    // valuation_ if `cost` stands
    uint32_t member = 0;    // tree_ if it is part of the tree at hand
    uint32_t met = 0;       // packets that reach a member
    uint32_t position = 0;  // of a member in the tree
    SwitchIndex next;       // of a member
    ChannelIndex up;
  };

  bool Insert(SwitchIndex leaf, uint32_t ranks);
  void Carry(SwitchIndex from, uint32_t ranks);
  bool FindWay(SwitchIndex at, Node& way);
  uint64_t CostFrom(SwitchIndex at);
  uint64_t PriceAt(uint32_t load) const;
  uint64_t Price(ChannelIndex over, uint32_t own) const;
  bool HasRoom(SwitchIndex at) const;
  uint32_t Leaving(SwitchIndex at) const;
  bool IsMember(SwitchIndex at) const { return nodes_[at.value()].member == tree_; }
  std::optional<BatchTree> Lay(const BatchShape& shape);

  const Snapshot& snapshot_;
  const Fabric& fabric_;
  const LinkLoads& loads_;
  absl::Span<const uint32_t> degrees_;
  uint32_t most_ = 0;
  uint32_t ranks_ = 1;  // of the leaf that joins
  SwitchIndex root_;
  absl::Span<const uint8_t> row_;  // hops to the root by class
  uint32_t waiting_servers_ = 0;   // without a packet so far; each will send the root one
  uint32_t tree_ = 0, valuation_ = 0;
  std::vector<Node> nodes_;           // [switch]
  std::vector<SwitchIndex> members_;  // parents before children
};

// Which roots are worth a try for a communicator: those of one distance, the ones nearest to all of
// its ranks first, and by turns, so that trying again and again tries others.
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
