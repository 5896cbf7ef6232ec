// The least time of a long message on a given tree: what a choice between many trees asks before it
// follows every packet (packet_metrics.h).
//
// Only the first and the last packet of each edge are looked at, each where no other keeps it
// waiting, and the work of whatever takes packets one by one:
//
//   first(v), last(v)    packet 0 and n - 1 of v's are reduced, or received, not before
//   last(v)           >= first arrival + all the matching that v does
//   whole time        >= first entry of a link + all that crosses it + way to the end from there
//
// So it never exceeds EvaluatePackets(), but for rounding.
#ifndef COPPICE_DAEMON_TREE_PACKET_BOUND_H_
#define COPPICE_DAEMON_TREE_PACKET_BOUND_H_

#include <vector>

#include "daemon/tree/cost_profile.h"
#include "daemon/tree/even_routes.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_spec.h"

namespace coppice {

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_PACKET_BOUND_H_
