// What a given tree costs where packets of several edges share links (spec: beyond 1 to 3): the
// exact evaluation with a queue before every link, first come, first served. Decisions between
// trees whose packets get into each other's way rest on it; tree_metrics.h, which knows no links'
// queues, never gives more and is far cheaper.
//
//   496 ranks of other leaf switches below one root, 32-ary:      ranks --- leaf ===16=== spine ---
//   496 packets on the one cable of a pruned fat tree             each waits for those before it
//
// Below: for which trees and sizes every packet is followed, and what that costs
// (packet_metrics.cc).
#ifndef COPPICE_DAEMON_TREE_CONTENDED_METRICS_H_
#define COPPICE_DAEMON_TREE_CONTENDED_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/even_routes.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_metrics.h"
#include "daemon/tree/tree_spec.h"

namespace coppice {

// The least time of a long message on a given tree: what a choice between many trees asks before it
// follows every packet.
//
// Only the first and the last packet of each edge are looked at, each where no other keeps it
// waiting, and the work of whatever takes packets one by one:
//
//   first(v), last(v)    packet 0 and n - 1 of v's are reduced, or received, not before
//   last(v)           >= first arrival + all the matching that v does
//   whole time        >= first entry of a link + all that crosses it + way to the end from there
//
// So it never exceeds EvaluatePackets(), but for rounding.
struct PacketBound {
  double least_us = 0;  // in all, T_init included
  // From when a node has reduced its last packet to the end, T_init apart.
  std::vector<double> after_done_us;  // [node]
  // From when the last packet enters a link to the end. Where results stream, both are for both
  // directions together.
  std::vector<double> after_entry_up_us, after_entry_down_us;  // [link of routes]
};

// `routes` as FindRoutes gives them. O(hops + nodes log width).
PacketBound BoundPackets(const CostProfile& profile, const AggregationTree& tree,
                         const TreeRoutes& routes, const Payload& payload);

// Weighted mean over a mix of sizes, as EvaluateMix, by EvaluatePackets. A result whose total
// exceeds `cutoff_us` may be less than it could be.
Prediction EvaluateContendedMix(const CostProfile& profile, const AggregationTree& tree,
                                absl::Span<const EdgeCost> edges, const TreeRoutes& routes,
                                const CollectiveMix& mix, double cutoff_us);

// At least so many microseconds in all, without following packets, but for rounding (1e-6 of it).
double LeastContendedUs(const CostProfile& profile, const AggregationTree& tree,
                        absl::Span<const EdgeCost> edges, const TreeRoutes& routes,
                        const CollectiveMix& mix);

// Some size is of more than one packet.
bool AnyIsLong(const CostProfile& profile, const CollectiveMix& mix);

// Communicators above this are judged without contention: following their packets would take longer
// than the rest of a plan.
inline constexpr uint32_t kMaxRanksContended = 4096;

// Packets of all trees that are followed through a long message, in sum: each way 64 KiB of 2 KiB
// each in 16 trees of 512 ranks, in all trees of 64.
inline constexpr uint64_t kMaxPacketsJudged = 524288;

// Whether long messages among so many ranks are judged packet by packet: a mix of very many long
// sizes is not.
bool FollowsPackets(const CostProfile& profile, const CollectiveMix& mix, uint32_t ranks);

// False: even all packets of a tree of so many nodes on one link of `slowest_gbps` would add less
// than a tenth of what one level of any tree takes by the closed form, which nobody would notice.
bool QueuesMayMatter(const CostProfile& profile, const CollectiveMix& mix, uint32_t nodes,
                     double slowest_gbps);

// Makes `predicted`, which EvaluateMix gave, what EvaluateContendedMix gives; leaves it where there
// are too many ranks or packets or, if no size is long, no link is shared or queues may not matter.
// A result that is not below `cutoff_us` may be less than it could be. Errors as FindRoutes.
absl::Status AddContention(const Snapshot& snapshot, const CostProfile& profile,
                           const AggregationTree& tree, absl::Span<const EdgeCost> edges,
                           const CollectiveMix& mix, Prediction& predicted,
                           double cutoff_us = kNoCutoff);

// What a message costs on a given tree, packet by packet (spec: beyond 1 to 3): every packet of
// every edge, with a queue before each link, each node's matching and its copying. Where
// tree_metrics.h knows the first packet of a long message and a slowest stage, here is what they
// cannot tell: near packets that overtake far ones, stages that the first packet did not wait for,
// results that come down through a port while packets still go up through it.
//
//   rank 5   0 1 2 3 ...            a leaf offers a packet when its port has sent the one before,
//             \ \ \ \ .              or a parent in the same host has taken it
//   rank 1     . 0 1 2 ...          packet i goes on when every child's packet i is reduced,
//   rank 0   <-------- 0 1 2 ...    and comes down again at once, if as many go down as come up
//
// Of very long messages the first packets are followed; those after them take as long as those
// after the first did, or a slowest stage each if that is longer. Events of one instant are handled
// in order of node, direction and packet.

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

#endif  // COPPICE_DAEMON_TREE_CONTENDED_METRICS_H_
