// Trees as tests ask for them.
#ifndef COPPICE_TESTS_SUPPORT_TREES_H_
#define COPPICE_TESTS_SUPPORT_TREES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/type1.h"

namespace coppice {

// Of one width; a planner derives the groups once and builds from them many times. Members are
// checked before they index the hierarchy.
inline absl::StatusOr<AggregationTree> BuildHierarchical(const Fabric& fabric,
                                                         const Hierarchy& hierarchy,
                                                         Members members, uint32_t width,
                                                         uint32_t nic_degree) {
  RETURN_IF_ERROR(BareTypeITree(fabric, members, TreeBuilder::kHierarchical, width).status());
  return BuildHierarchical(fabric, GroupMembers(hierarchy, members), members, width, nic_degree);
}

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_TREES_H_
