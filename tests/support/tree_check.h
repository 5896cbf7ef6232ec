// The verifier: whether a tree is what it claims to be, by the definitions alone (Chen 2024, 2.1, 3
// and 4.2). Shares no code with the builders; tests run it on every tree that they meet.
// CheckAncestry, which the daemon asks as well, is in daemon/tree/tree.h.
//
// Every check answers INTERNAL with the node and the rule that it breaks, or OK. All are
// near-linear.
#ifndef COPPICE_TESTS_SUPPORT_TREE_CHECK_H_
#define COPPICE_TESTS_SUPPORT_TREE_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/hierarchy.h"
#include "daemon/tree/tree.h"

namespace coppice {

// One root, parents in range, every node connected to the root; every rank where `members` says,
// and after them distinct switches in order of their index, none for type I. Every switch has
// children.
absl::Status CheckTree(const Fabric& fabric, const AggregationTree& tree, Members members);

// No rank of a type I tree has more than `nic_degree` children, no rank of a type II tree any, and
// no switch s more than switch_degrees[s] (empty: not checked).
absl::Status CheckDegrees(const AggregationTree& tree, uint32_t nic_degree,
                          absl::Span<const uint32_t> switch_degrees);

// Definitions 7 and 8: every parent is the formula's.
absl::Status CheckKary(const AggregationTree& tree);
absl::Status CheckKnomial(const AggregationTree& tree);

// Condition 2 of 3.3.1 at every level of `hierarchy`: in every group exactly one rank has its
// parent outside or is the root.
absl::Status CheckGroups(const Hierarchy& hierarchy, Members members, const AggregationTree& tree);

// Definition 9: `physical` is a tree over vertices of the fabric, each joined to its parent by the
// channel that it names; its leaves are exactly the members' endpoints, which have no children.
absl::Status CheckPhysicalTree(const Fabric& fabric, const PhysicalTree& physical, Members members);

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_TREE_CHECK_H_
