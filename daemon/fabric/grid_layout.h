// Switches of a torus, mesh or hypercube by their coordinates: who is next to whom along each
// dimension, for dimension-order routing. Knows positions and not cables: whether two neighbours
// are joined is the fabric's matter.
#ifndef COPPICE_DAEMON_FABRIC_GRID_LAYOUT_H_
#define COPPICE_DAEMON_FABRIC_GRID_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/fabric/coordinates.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

// Immutable; thread-safe.
class GridLayout {
 public:
  // Reads the position of every switch from its description. INVALID_ARGUMENT, naming the switch:
  // no position, another grid's, or one that another switch has. O(switches * dimensions).
  static absl::StatusOr<GridLayout> FromDescriptions(const Fabric& fabric);

  // The switch that a packet at `s` for `to` goes to: along the lowest dimension in which the two
  // differ, the shorter way round, upwards if both are equally long. nullopt if s is `to` or no
  // switch has that position. O(dimensions).
  std::optional<SwitchIndex> Next(SwitchIndex s, SwitchIndex to) const;

 private:
  static constexpr uint32_t kNobody = 0xffffffff;
  const int32_t* at(SwitchIndex s) const { return &at_[s.value() * extents_.size()]; }
  absl::Status AddPosition(const Fabric& fabric, SwitchIndex s);
  absl::Status FindNeighbours(const Fabric& fabric);

  std::vector<int32_t> extents_;  // [dimension]
  GridKind kind_ = GridKind::kTorus;
  std::vector<int32_t> at_;           // [switch][dimension]
  std::vector<uint32_t> neighbours_;  // [switch][dimension][0 down, 1 up], kNobody
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_GRID_LAYOUT_H_
