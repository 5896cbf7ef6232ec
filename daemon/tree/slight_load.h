// Load that no predicted time shows. A daemon with live trees always has some: a tree of 8 bytes
// promises a thousandth of a link. It decides between roots and between cables that are alike, so
// that tenants keep out of each other's way; but taking it into account in every edge would mean to
// walk every route, where on an idle fabric hops say everything (even_routes.h).
#ifndef COPPICE_DAEMON_TREE_SLIGHT_LOAD_H_
#define COPPICE_DAEMON_TREE_SLIGHT_LOAD_H_

#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"

namespace coppice {

// Below this a wait w(u) on one link is no wait: the paper's model is off by half a microsecond.
inline constexpr double kLeastWaitUs = 1e-3;

// The snapshot with which times are predicted: without load if no link keeps a packet waiting for
// kLeastWaitUs, even if the most loaded one were the slowest; else the same. O(1).
Snapshot ForPrediction(const Snapshot& snapshot, const CostProfile& profile);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_SLIGHT_LOAD_H_
