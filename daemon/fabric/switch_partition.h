// How the hierarchy groups switches: one partition a level, found by the method that fits the
// fabric. Internal to hierarchy.cc; the methods are pure functions.
#ifndef COPPICE_DAEMON_FABRIC_SWITCH_PARTITION_H_
#define COPPICE_DAEMON_FABRIC_SWITCH_PARTITION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/fabric/fabric.h"

namespace coppice {

// [switch] the lowest switch of its group.
using SwitchPartition = std::vector<uint32_t>;

struct SwitchPartitions {
  std::vector<SwitchPartition> levels;  // from fine to coarse, nested
  std::vector<bool> fits;               // [component] the method says something about it
  std::vector<std::string> shape;       // [component] where it fits
};

// Fat trees and whatever else has switches above switches (hierarchy_layers.cc). O(links).
SwitchPartitions PartitionByLayers(const Fabric& fabric);

// Groups whose switches are all joined to each other (hierarchy_cliques.cc). Looks only at the
// components that `wanted` marks. About O(links * ports) at worst.
SwitchPartitions PartitionByCliques(const Fabric& fabric, const std::vector<bool>& wanted);

// Lines, planes, ... of a grid whose switches state their coordinates (hierarchy_grid.cc): all
// components or none. O(switches * dimensions * log(switches)).
SwitchPartitions PartitionByCoordinates(const Fabric& fabric);

// The same of grids whose switches are called anyhow, by their cables: components that are whole
// grids with hosts on every switch (hierarchy_grid_structure.cc). O(switches * cables each^3).
SwitchPartitions PartitionByGridStructure(const Fabric& fabric);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_SWITCH_PARTITION_H_
