// Grids: the switches that agree in all but the first d coordinates are one group of level d.
//
//     d = 1: lines along x      d = 2: planes       d = 3: blocks, ...
//        o-o-o-o                 o-o-o-o
//                                o-o-o-o
//
// Taken if nine switches in ten state a position on one and the same grid, each another one. The
// rest, a management switch or a replaced one, are groups of their own.
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/fabric/coordinates.h"
#include "daemon/fabric/switch_partition.h"

namespace coppice {
namespace {

struct Grid {
  GridKind kind = GridKind::kTorus;
  std::vector<int32_t> extents;
  std::vector<std::optional<GridPosition>> positions;  // [switch]
};

// The grid that most positions are on; nullopt if it is not that of nine switches in ten.
std::optional<Grid> FindGrid(const Fabric& fabric) {
  Grid grid;
  std::map<std::pair<GridKind, std::vector<int32_t>>, uint32_t> votes;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    grid.positions.push_back(ParsePosition(fabric.switch_info(SwitchIndex(s)).description));
    if (const auto& position = grid.positions.back()) ++votes[{position->kind, position->extents}];
  }
  uint32_t most = 0;
  for (const auto& [kind_and_extents, count] : votes) {
    if (count <= most) continue;
    most = count;
    std::tie(grid.kind, grid.extents) = kind_and_extents;
  }
  std::map<std::vector<int32_t>, uint32_t> seen;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    std::optional<GridPosition>& position = grid.positions[s];
    if (!position) continue;
    if (position->kind == grid.kind && position->extents == grid.extents &&
        seen.emplace(position->at, s).second) {
      continue;
    }
    position.reset();
  }
  if (seen.empty() || 10 * seen.size() < size_t{9} * fabric.switch_count()) return std::nullopt;
  return grid;
}

}  // namespace

SwitchPartitions PartitionByCoordinates(const Fabric& fabric) {
  SwitchPartitions result;
  result.fits.assign(fabric.component_count(), false);
  const std::optional<Grid> grid = FindGrid(fabric);
  if (!grid) return result;
  result.fits.assign(fabric.component_count(), true);
  result.shape.assign(fabric.component_count(), std::string(ToString(grid->kind)));
  for (size_t d = 1; d < grid->extents.size(); ++d) {
    std::map<std::pair<uint32_t, std::vector<int32_t>>, uint32_t> lowest;
    SwitchPartition partition(fabric.switch_count());
    for (uint32_t s = 0; s < partition.size(); ++s) {
      partition[s] = s;
      if (!grid->positions[s]) continue;
      const std::vector<int32_t>& at = grid->positions[s]->at;
      std::vector<int32_t> rest(at.begin() + static_cast<std::ptrdiff_t>(d), at.end());
      const uint32_t component = fabric.component(VertexIndex(s));
      partition[s] = lowest.try_emplace({component, std::move(rest)}, s).first->second;
    }
    result.levels.push_back(std::move(partition));
  }
  return result;
}

}  // namespace coppice
