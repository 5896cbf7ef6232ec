// Grids: the switches that agree in all but the first d coordinates are one group of level d.
//
//     d = 1: lines along x      d = 2: planes       d = 3: blocks, ...
//        o-o-o-o                 o-o-o-o
//                                o-o-o-o
//
// Taken only if every switch states a position on one and the same grid, each another one.
#include <map>

#include "daemon/fabric/coordinates.h"
#include "daemon/fabric/switch_partition.h"

namespace coppice {
namespace {

// Positions of all switches; empty if they are not those of one grid.
std::vector<GridPosition> Positions(const Fabric& fabric) {
  std::vector<GridPosition> positions;
  positions.reserve(fabric.switch_count());
  std::map<std::vector<int32_t>, uint32_t> seen;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    auto position = ParsePosition(fabric.switch_info(SwitchIndex(s)).description);
    if (!position || !seen.emplace(position->at, s).second) return {};
    if (s > 0 &&
        (position->extents != positions[0].extents || position->kind != positions[0].kind)) {
      return {};
    }
    positions.push_back(*std::move(position));
  }
  return positions;
}

}  // namespace

SwitchPartitions PartitionByCoordinates(const Fabric& fabric) {
  SwitchPartitions result;
  result.fits.assign(fabric.component_count(), false);
  const std::vector<GridPosition> positions = Positions(fabric);
  if (positions.empty()) return result;
  result.fits.assign(fabric.component_count(), true);
  result.shape.assign(fabric.component_count(), std::string(ToString(positions[0].kind)));
  for (size_t d = 1; d < positions[0].at.size(); ++d) {
    std::map<std::pair<uint32_t, std::vector<int32_t>>, uint32_t> lowest;
    SwitchPartition partition(positions.size());
    for (uint32_t s = 0; s < positions.size(); ++s) {
      std::vector<int32_t> rest(positions[s].at.begin() + static_cast<std::ptrdiff_t>(d),
                                positions[s].at.end());
      const uint32_t component = fabric.component(VertexIndex(s));
      partition[s] = lowest.try_emplace({component, std::move(rest)}, s).first->second;
    }
    result.levels.push_back(std::move(partition));
  }
  return result;
}

}  // namespace coppice
