// The physical tree of one communicator when it is known who serves: path by path over the least
// loaded links, to whichever server has room. Costs entries nothing and unloads links.
#ifndef COPPICE_DAEMON_TREE_BATCH_SPREAD_PATHS_H_
#define COPPICE_DAEMON_TREE_BATCH_SPREAD_PATHS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/shapes.h"
#include "daemon/tree/batch/state.h"

namespace coppice {

// Not thread-safe: reuses its arrays from one tree to the next.
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

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_BATCH_SPREAD_PATHS_H_
