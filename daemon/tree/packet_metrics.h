// What a message costs on a given tree, packet by packet (spec: beyond 1 to 3): every packet of
// every edge, with a queue before each link, each node's matching and its copying. Where
// pipelining.h knows the first packet of a long message and a slowest stage, here is what they
// cannot tell: near packets that overtake far ones, stages that the first packet did not wait for,
// results that come down through a port while packets still go up through it.
//
//   rank 5   0 1 2 3 ...            a leaf offers a packet when its port has sent the one before
//             \ \ \ \ .
//   rank 1     . 0 1 2 ...          packet i goes on when every child's packet i is reduced,
//   rank 0   <-------- 0 1 2 ...    and comes down again at once, if as many go down as come up
//
// Of very long messages the first packets are followed; those after them take as long as those
// after the first did, or a slowest stage each if that is longer. Knows nothing of the simulator,
// which judges it. Deterministic: events of one instant are handled in order of node, direction and
// packet.
#ifndef COPPICE_DAEMON_TREE_PACKET_METRICS_H_
#define COPPICE_DAEMON_TREE_PACKET_METRICS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/even_routes.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_metrics.h"
#include "daemon/tree/tree_spec.h"

namespace coppice {

// Packets of one direction followed in one tree, in sum: 40 of each of 512 ranks; and at most of
// one rank.
inline constexpr uint64_t kMaxPacketsFollowed = 20480;
inline constexpr uint64_t kMaxPacketsFollowedOfOne = 64;

// How many packets EvaluatePackets() follows through a tree of so many nodes, both ways, for a mix
// of sizes.
uint64_t PacketsToFollow(const CostProfile& profile, const CollectiveMix& mix, size_t nodes);

// Of one packet at least what Evaluate gives, but for rounding (EdgeCost is of floats: 1e-6 of it);
// the same where no link is shared but at a parent's port. `edges` as EdgeCosts gives them,
// `routes` as FindRoutes does, of a tree (tree.h). A result whose total exceeds `cutoff_us` may be
// less than it could be. O(packets followed * nodes * (shared links + 1) * log).
Prediction EvaluatePackets(const CostProfile& profile, const AggregationTree& tree,
                           absl::Span<const EdgeCost> edges, const TreeRoutes& routes,
                           const Payload& payload, double cutoff_us);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_PACKET_METRICS_H_
