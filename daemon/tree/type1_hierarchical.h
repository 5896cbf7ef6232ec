// Hierarchical k-nomial trees on a fabric: its nested groups (host, leaf switch, pod, ...) as
// NestedGroups, arranged by group_slots.h, which says what is least about them.
//
// A planner that compares widths derives the groups once and builds from them many times.
#ifndef COPPICE_DAEMON_TREE_TYPE1_HIERARCHICAL_H_
#define COPPICE_DAEMON_TREE_TYPE1_HIERARCHICAL_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/hierarchy.h"
#include "daemon/tree/group_slots.h"
#include "daemon/tree/tree.h"

namespace coppice {

// The members' groups, those of one part left out: a group that holds one rank is that rank, and a
// level that does not divide its group further is none. The ranks of one host are ordered; what is
// above stands in order of its lowest rank. Members are endpoints of the hierarchy's fabric.
// O(ranks * levels), or with a logarithm where the fabric is much larger than the communicator.
NestedGroups GroupMembers(const Hierarchy& hierarchy, Members members);

// BuildHierarchical (type1.h) with groups = GroupMembers(hierarchy, members).
absl::StatusOr<AggregationTree> BuildHierarchicalFrom(const Fabric& fabric,
                                                      const NestedGroups& groups, Members members,
                                                      uint32_t width, uint32_t nic_degree);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TYPE1_HIERARCHICAL_H_
