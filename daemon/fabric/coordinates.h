// Where a switch sits on a grid, as the torus, mesh and hypercube models write it at the end of its
// description: "sw(0,1,2;4x4x4 torus)", "sw(1,0;3x2 mesh)", "sw(0,1,1;2x2x2 hypercube)". Anybody
// may name switches of a real grid so; dimension-order routing and the hierarchy read nothing else.
#ifndef COPPICE_DAEMON_FABRIC_COORDINATES_H_
#define COPPICE_DAEMON_FABRIC_COORDINATES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace coppice {

enum class GridKind : uint8_t { kTorus, kMesh, kHypercube };

// "torus", "mesh", "hypercube".
absl::string_view ToString(GridKind kind);

struct GridPosition {
  std::vector<int32_t> at;       // [dimension] 0 <= at < extent
  std::vector<int32_t> extents;  // [dimension] >= 1
  GridKind kind = GridKind::kTorus;

  // True if the last switch along a dimension is cabled to the first.
  bool wraps() const { return kind == GridKind::kTorus; }
  friend bool operator==(const GridPosition&, const GridPosition&) = default;
};

// "NAME(x,y,z;XxYxZ torus)".
std::string FormatPosition(absl::string_view name, const GridPosition& position);

// The position that ends `description`; nullopt if there is none or it contradicts itself: another
// number of coordinates than of extents, a coordinate outside its extent, more than 32 dimensions,
// an extent above 2^20, a hypercube with an extent other than 2.
std::optional<GridPosition> ParsePosition(absl::string_view description);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_COORDINATES_H_
