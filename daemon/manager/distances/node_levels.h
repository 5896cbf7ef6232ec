// How far hosts are from each other in the fabric, in links: the levels that samples are taken of
// and that estimates stand on. A host with several ports counts by its first.
#ifndef COPPICE_DAEMON_MANAGER_DISTANCES_NODE_LEVELS_H_
#define COPPICE_DAEMON_MANAGER_DISTANCES_NODE_LEVELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/fabric/snapshot.h"
#include "daemon/manager/distances/measurement.h"

namespace coppice {

// Of hosts that no links join, or that the fabric does not have.
inline constexpr uint32_t kApart = UINT32_MAX;

// Links between two different endpoints' hosts: 2 of one leaf switch, 4, 6, ...; kApart.
uint32_t LevelOf(const SwitchDistances& distances, EndpointIndex a, EndpointIndex b);

// By leaf switch. The snapshot outlives it.
NodeLevels LevelsOf(const Snapshot& snapshot, const std::vector<std::string>& hosts);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_DISTANCES_NODE_LEVELS_H_
