// What one collective over a tree puts on the fabric's channels: who else will feel it, and how
// long its busiest channel is busy with it. The time of the collective itself: tree_metrics.h.
//
// An edge's messages cross the route between its ends, each way its own. Over shortest paths, where
// nobody has fixed the routes, the edges of a type II tree follow its physical tree, whose cables
// were chosen for their load.
#ifndef COPPICE_DAEMON_TREE_LINK_USE_H_
#define COPPICE_DAEMON_TREE_LINK_USE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_spec.h"

namespace coppice {

// Messages of one collective that cross a channel.
struct ChannelUse {
  ChannelIndex channel;
  uint32_t up = 0, down = 0;  // towards the tree's root, away from it
  friend bool operator==(const ChannelUse&, const ChannelUse&) = default;
};

// Counts edge by edge. Keeps its memory, so that whoever counts many trees allocates once.
class LinkUseCounter final {
 public:
  // Forgets what was counted. `snapshot` must outlive the counting.
  void Begin(const Snapshot& snapshot);
  // One edge over the routes. NOT_FOUND, and nothing counted: there is none, one way or the other.
  absl::Status AddEdge(VertexIndex child, VertexIndex parent);
  // The channels of `tree`; `physical` may be null, and may lack vertices (any index that the
  // fabric does not have) and channels. NOT_FOUND: an edge has no route; the others are counted.
  absl::Status AddTree(const AggregationTree& tree, const PhysicalTree* physical);
  // What was counted, by channel. Ready for Begin.
  void Take(std::vector<ChannelUse>& uses);

 private:
  struct Count {
    uint32_t up = 0, down = 0;
  };
  void Cross(ChannelIndex channel, uint32_t up, uint32_t down);
  void PlacePhysical(const PhysicalTree& physical);
  bool Climb(const PhysicalTree& physical, VertexIndex child, VertexIndex parent);

  const Snapshot* snapshot_ = nullptr;
  std::vector<Count> counts_;       // [channel]; zero between uses
  std::vector<uint32_t> crossed_;   // channels with a count
  std::vector<uint32_t> position_;  // [vertex] in the physical tree
  std::vector<ChannelIndex> up_path_, down_path_;
};

// Bytes of one collective on a channel for each message, with headers; the mean over a mix.
struct MessageBytes {
  double up = 0, down = 0;
};
MessageBytes BytesOfMessages(const CostProfile& profile, const CollectiveMix& mix);

// The channel that one collective keeps busy longest, given what others leave of it:
//
//     us(c) = bytes(c) / (B(c) * (1 - u(c)))      B: capacity, the profile's where unknown
struct BusiestLink {
  ChannelIndex channel = kNoChannel;  // the lowest of those alike
  double us = 0;
  uint32_t packets = 0;  // messages that cross it
};
BusiestLink FindBusiestLink(const Snapshot& snapshot, const CostProfile& profile,
                            const MessageBytes& bytes, absl::Span<const ChannelUse> uses);

// Load that no predicted time shows. A daemon with live trees always has some: a tree of 8 bytes
// promises a thousandth of a link. It decides between roots and between cables that are alike; but
// taking it into account in every edge would mean to walk every route (even_routes.h). Below this a
// wait w(u) on one link is no wait: the paper's model is off by half a microsecond.
inline constexpr double kMinWaitUs = 1e-3;

// The snapshot with which times are predicted: without load if no link keeps a packet waiting for
// kMinWaitUs, even if the most loaded one were the slowest; else the same. O(1).
Snapshot ForPrediction(const Snapshot& snapshot, const CostProfile& profile);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_LINK_USE_H_
