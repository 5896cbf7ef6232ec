// The two ways in which groups of switches are wired that dragonfly, dragonfly+ and PERCS share.
#ifndef COPPICE_DAEMON_FABRIC_MODELS_GROUP_CABLES_H_
#define COPPICE_DAEMON_FABRIC_MODELS_GROUP_CABLES_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/models/model_builder.h"

namespace coppice {

// Joins every two of the switches first, first + 1, ..., first + count - 1. `link_of(i, j)` is the
// link between the i-th and the j-th, i < j.
template <class LinkOf>
void CableEachPair(ModelBuilder& builder, uint32_t first, uint64_t count, LinkOf link_of) {
  for (uint64_t i = 0; i < count; ++i) {
    for (uint64_t j = i + 1; j < count; ++j) {
      builder.Cable(static_cast<uint32_t>(first + i), static_cast<uint32_t>(first + j),
                    link_of(i, j));
    }
  }
}

// Joins every pair of groups by the same number of cables, the most that the groups' global ports
// allow. global_ports[g] lists the switch that each global port of group g is on; all groups have
// as many.
//
// Round k of the ports goes once to every other group in order: port k (groups - 1) + i of a group
// is its k-th cable to its i-th other group. Ports left over by an incomplete round stay free.
void CableGroups(ModelBuilder& builder, const std::vector<std::vector<uint32_t>>& global_ports,
                 ModelLink link);

// INVALID_ARGUMENT if `groups`, the value of the argument `name`, are more than `global_ports` of
// each can join.
absl::Status CheckGroups(absl::string_view name, uint64_t groups, uint64_t global_ports);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_MODELS_GROUP_CABLES_H_
