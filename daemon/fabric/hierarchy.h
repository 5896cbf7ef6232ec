// Nested groups of endpoints that are near each other, derived from any fabric: host, leaf switch,
// pod or group, ..., component. Hierarchical trees merge along them.
#ifndef COPPICE_DAEMON_FABRIC_HIERARCHY_H_
#define COPPICE_DAEMON_FABRIC_HIERARCHY_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

// Where a switch sits on a grid, as the torus, mesh and hypercube models write it at the end of its
// description: "sw(0,1,2;4x4x4 torus)", "sw(1,0;3x2 mesh)", "sw(0,1,1;2x2x2 hypercube)". Anybody
// may name switches of a real grid so; dimension-order routing and the hierarchy read nothing else.
enum class GridKind : uint8_t { kTorus, kMesh, kHypercube };

// "torus", "mesh", "hypercube".
absl::string_view ToString(GridKind kind);

struct GridPosition {
  std::vector<int32_t> at;       // [dimension] 0 <= at < extent
  std::vector<int32_t> extents;  // [dimension] >= 1
  GridKind kind = GridKind::kTorus;

  friend bool operator==(const GridPosition&, const GridPosition&) = default;
};

// "NAME(x,y,z;XxYxZ torus)".
std::string FormatPosition(absl::string_view name, const GridPosition& position);

// The position that ends `description`; nullopt if there is none or it contradicts itself: another
// number of coordinates than of extents, a coordinate outside its extent, more than 32 dimensions,
// an extent above 2^20, a hypercube with an extent other than 2.
std::optional<GridPosition> ParsePosition(absl::string_view description);

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

// Numbers of `members`, of whom two may be at one endpoint, so that those near each other are
// neighbours: each group of each level in one piece, that of `first` before the others and these by
// number. `first` comes first; members of one host by number. O(levels * n log n).
std::vector<uint32_t> OrderByNearness(const Hierarchy& hierarchy,
                                      absl::Span<const EndpointIndex> members, uint32_t first);

// How the hierarchy groups switches: one partition a level, found by the method that fits the
// fabric. Internal to hierarchy.cc; the methods are pure functions.

// [switch] the lowest switch of its group.
using SwitchPartition = std::vector<uint32_t>;

struct SwitchPartitions {
  std::vector<SwitchPartition> levels;  // from fine to coarse, nested
  std::vector<bool> fits;               // [component] the method says something about it
  std::vector<std::string> shape;       // [component] where it fits
};

// Of numbers, each alone at first; the lowest of a set stands for it.
class DisjointSets {
 public:
  explicit DisjointSets(uint32_t count) : above_(count) { absl::c_iota(above_, 0U); }
  uint32_t Find(uint32_t x) {
    while (above_[x] != x) x = above_[x] = above_[above_[x]];
    return x;
  }
  void Unite(uint32_t a, uint32_t b) {
    a = Find(a);
    b = Find(b);
    above_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<uint32_t> above_;
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
