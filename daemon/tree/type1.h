// Type I trees: every inner node is a member's NIC. Three ways to arrange the ranks (Chen 2024,
// section 3); one file pair each, all behind these signatures.
#ifndef COPPICE_DAEMON_TREE_TYPE1_H_
#define COPPICE_DAEMON_TREE_TYPE1_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/hierarchy.h"
#include "daemon/tree/group_slots.h"
#include "daemon/tree/tree.h"

namespace coppice {

// All three: width k >= 2 unless P <= 1 (INVALID_ARGUMENT); RESOURCE_EXHAUSTED if some rank would
// have more than `nic_degree` children, naming the rank, its children and the limit. P = 0 is
// INVALID_ARGUMENT, P = 1 the single node.

// Definition 7: parent of r is (r-1)/k.
absl::StatusOr<AggregationTree> BuildKary(const Fabric& fabric, Members members, uint32_t width,
                                          uint32_t nic_degree);

// Definition 8: parent of r is r with its lowest non-zero base-k digit set to 0.
absl::StatusOr<AggregationTree> BuildKnomial(const Fabric& fabric, Members members, uint32_t width,
                                             uint32_t nic_degree);

// Hierarchical k-nomial trees on a fabric: its nested groups (host, leaf switch, pod, ...) as
// NestedGroups, arranged by group_slots.h, which says what is least about them.
//
// A planner that compares widths derives the groups once and builds from them many times.

// The members' groups, those of one part left out: a group that holds one rank is that rank, and a
// level that does not divide its group further is none. The ranks of one host are ordered; what is
// above stands in order of its lowest rank. Members are endpoints of the hierarchy's fabric.
// O(ranks * levels), or with a logarithm where the fabric is much larger than the communicator.
NestedGroups GroupMembers(const Hierarchy& hierarchy, Members members);

// Algorithms 2-4 with the least occupied height. `groups` are the members', who are endpoints of
// the fabric.
absl::StatusOr<AggregationTree> BuildHierarchical(const Fabric& fabric, const NestedGroups& groups,
                                                  Members members, uint32_t width,
                                                  uint32_t nic_degree);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE1_H_
