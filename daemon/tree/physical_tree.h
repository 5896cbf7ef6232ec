// The physical tree that a type II tree derives from: how the members' packets reach one switch.
#ifndef COPPICE_DAEMON_TREE_PHYSICAL_TREE_H_
#define COPPICE_DAEMON_TREE_PHYSICAL_TREE_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/tree.h"

namespace coppice {

// Over forwarding tables and dimension-order routes: the union of the endpoints' routes to the
// root, a tree because such routes depend on the destination only. Over shortest paths: every
// switch goes one hop nearer over its least loaded channel; of equally loaded ones the one that the
// route to the root takes.
//
// `endpoints` are distinct and become the last vertices, in their order; the switches before them
// appear parents first. FAILED_PRECONDITION: an endpoint without a switch, a hole or a loop in the
// routes (names the endpoint and the switch): this root is out. O(endpoints + switches of the tree)
// routing steps and an array over all switches.
absl::StatusOr<PhysicalTree> BuildPhysicalTree(const Snapshot& snapshot,
                                               absl::Span<const EndpointIndex> endpoints,
                                               SwitchIndex root);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_PHYSICAL_TREE_H_
