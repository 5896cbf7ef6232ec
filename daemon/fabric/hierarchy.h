// Nested groups of endpoints that are near each other, derived from any fabric: host, leaf switch,
// pod or group, ..., component. Hierarchical trees merge along them.
#ifndef COPPICE_DAEMON_FABRIC_HIERARCHY_H_
#define COPPICE_DAEMON_FABRIC_HIERARCHY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/fabric/fabric.h"

namespace coppice {

// Level 0 is the host's part on one switch (Fabric::bundle), level 1 the leaf switch, the last
// level the connected component. Levels that would equal the one before them are left out (except
// host, leaf switch and component).
struct Hierarchy {
  struct Level {
    std::string name;  // "host", "leaf switch", "pod", "group", "plane", "component"
    uint32_t group_count = 0;
    std::vector<uint32_t> group;  // [endpoint] group number, 0..group_count-1 by lowest endpoint
  };
  std::vector<Level> levels;

  // A word for the whole: "fat tree", "torus", "dragonfly", "irregular".
  std::string shape;

  // Invariant: two endpoints in one group at level i are in one group at level i+1.
};

// Total, deterministic; near-linear in switches + links. How: see hierarchy.cc.
std::shared_ptr<const Hierarchy> DeriveHierarchy(const Fabric& fabric);

// How the hierarchy groups switches: one partition a level, found by the method that fits the
// fabric. Internal to hierarchy.cc; the methods are pure functions.

// [switch] the lowest switch of its group.
using SwitchPartition = std::vector<uint32_t>;

struct SwitchPartitions {
  std::vector<SwitchPartition> levels;  // from fine to coarse, nested
  std::vector<bool> fits;               // [component] the method says something about it
  std::vector<std::string> shape;       // [component] where it fits
};

// Fat trees and whatever else has switches above switches. O(links).
SwitchPartitions PartitionByLayers(const Fabric& fabric);

// Groups whose switches are all joined to each other (hierarchy_cliques.cc). Looks only at the
// components that `wanted` marks. About O(links * ports) at worst.
SwitchPartitions PartitionByCliques(const Fabric& fabric, const std::vector<bool>& wanted);

// Lines, planes, ... of a grid whose switches state their coordinates (hierarchy_grid.cc): all
// components or none. O(switches * dimensions * log(switches)).
SwitchPartitions PartitionByCoordinates(const Fabric& fabric);

// The same of grids whose switches are called anyhow, by their cables: components that are whole
// grids with hosts on every switch (hierarchy_grid.cc). O(switches * cables each^3).
SwitchPartitions PartitionByGridStructure(const Fabric& fabric);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_HIERARCHY_H_
