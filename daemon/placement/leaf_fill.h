// Which leaf switches of a region to fill, where all of them are equally far from each other: the
// answer within a pod, and a bound everywhere.
#ifndef COPPICE_DAEMON_PLACEMENT_LEAF_FILL_H_
#define COPPICE_DAEMON_PLACEMENT_LEAF_FILL_H_

#include <cstdint>
#include <optional>

#include "daemon/placement/count_state.h"

namespace coppice {

struct LeafFill {
  LeafCounts counts;
  double cost = 0;  // of leaf switches, fragmentation, penalties and distance, pods left out
};

// The counts of `hosts` on leaf switches of the field with the least cost if hosts of different
// leaf switches are `hops` apart, whatever the field's distances are; counts of leaf switches,
// pods and hosts_per_leaf are not heeded. nullopt: too little room, or more than kMostFillHosts.
// O(hosts * kinds of leaf switches * (log + most hosts of one)).
inline constexpr uint32_t kMostFillHosts = 4096;
std::optional<LeafFill> FillLeaves(const LeafField& field, uint32_t hosts, double hops);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_LEAF_FILL_H_
