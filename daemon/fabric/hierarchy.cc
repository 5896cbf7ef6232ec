// Levels of the hierarchy from four views of the switches, tried in this order:
//
//   coordinates     torus, mesh, hypercube    line < plane < block       hierarchy_grid.cc
//   product         the same without names    line < plane < block hierarchy_grid_structure.cc
//   layers          fat tree, dragonfly+      pod < pod 2 < ...          hierarchy_layers.cc
//   dense groups    dragonfly, PERCS, HyperX  group < group 2 < ...      hierarchy_cliques.cc
//
//      component  +-----------------------------------+
//      pod        |  +------------+   +------------+  |     Layers and dense groups are decided for
//      leaf       |  | [A]  [B]   |   | [C]  [D]   |  |     each component by itself; one with
//      fewer host       |  | h h  h h   |   | h h  h h   |  |     levels repeats its coarsest one.
//                 |  +------------+   +------------+  |
//                 +-----------------------------------+
//
// Where none fits (irregular), there is nothing between leaf switch and component. O(links) but
// for dense groups, whose cost hierarchy_cliques.cc states.
#include "daemon/fabric/hierarchy.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "daemon/fabric/switch_partition.h"

namespace coppice {
namespace {

// Numbers groups by their lowest endpoint.
template <class KeyOf>
Hierarchy::Level MakeLevel(const Fabric& fabric, std::string name, KeyOf key_of) {
  Hierarchy::Level level;
  level.name = std::move(name);
  level.group.resize(fabric.endpoint_count());
  absl::flat_hash_map<uint64_t, uint32_t> numbers;
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
    const uint64_t key = key_of(EndpointIndex(e));
    level.group[e] = numbers.try_emplace(key, level.group_count).first->second;
    level.group_count = std::max(level.group_count, level.group[e] + 1);
  }
  return level;
}

// The switch of an endpoint; endpoints joined back to back share a key above all switches.
uint32_t LeafKey(const Fabric& fabric, EndpointIndex e) {
  const auto s = fabric.attached_switch(e);
  return s ? s->value() : fabric.switch_count() + fabric.component(fabric.Vertex(e));
}

struct Middle {
  std::vector<SwitchPartition> levels;
  std::string shape;
};

uint32_t LargestComponent(const Fabric& fabric) {
  std::vector<uint32_t> size(fabric.component_count(), 0);
  for (uint32_t v = 0; v < fabric.vertex_count(); ++v) ++size[fabric.component(VertexIndex(v))];
  return static_cast<uint32_t>(std::max_element(size.begin(), size.end()) - size.begin());
}

// Partition i of `partitions` for one switch; itself where there are none.
uint32_t GroupAt(const SwitchPartitions& partitions, size_t i, uint32_t s) {
  if (partitions.levels.empty()) return s;
  return partitions.levels[std::min(i, partitions.levels.size() - 1)][s];
}

Middle GroupSwitches(const Fabric& fabric) {
  Middle middle;
  middle.shape = "irregular";
  if (fabric.component_count() == 0) return middle;
  const uint32_t largest = LargestComponent(fabric);
  SwitchPartitions grid = PartitionByCoordinates(fabric);
  if (!grid.fits[largest]) grid = PartitionByGridStructure(fabric);
  if (grid.fits[largest]) return {std::move(grid.levels), grid.shape[largest]};
  const SwitchPartitions layers = PartitionByLayers(fabric);
  std::vector<bool> rest = layers.fits;
  rest.flip();
  const SwitchPartitions cliques = PartitionByCliques(fabric, rest);
  if (layers.fits[largest]) middle.shape = layers.shape[largest];
  if (cliques.fits[largest]) middle.shape = cliques.shape[largest];
  const size_t count = std::max(layers.levels.size(), cliques.levels.size());
  for (size_t i = 0; i < count; ++i) {
    SwitchPartition partition(fabric.switch_count());
    for (uint32_t s = 0; s < partition.size(); ++s) {
      const bool layered = layers.fits[fabric.component(VertexIndex(s))];
      partition[s] = GroupAt(layered ? layers : cliques, i, s);
    }
    middle.levels.push_back(std::move(partition));
  }
  return middle;
}

std::string MiddleName(const std::string& shape, size_t number) {
  if (shape == "torus" || shape == "mesh" || shape == "hypercube") {
    if (number <= 2) return number == 1 ? "line" : "plane";
    return absl::StrCat("block ", number);
  }
  const absl::string_view word = shape == "fat tree" ? "pod" : "group";
  return number == 1 ? std::string(word) : absl::StrCat(word, " ", number);
}

}  // namespace

std::shared_ptr<const Hierarchy> DeriveHierarchy(const Fabric& fabric) {
  auto hierarchy = std::make_shared<Hierarchy>();
  Middle middle = GroupSwitches(fabric);
  hierarchy->shape = middle.shape;
  std::vector<Hierarchy::Level>& levels = hierarchy->levels;
  levels.push_back(
      MakeLevel(fabric, "host", [&](EndpointIndex e) { return fabric.bundle(e).value(); }));
  levels.push_back(
      MakeLevel(fabric, "leaf switch", [&](EndpointIndex e) { return LeafKey(fabric, e); }));
  Hierarchy::Level component = MakeLevel(
      fabric, "component", [&](EndpointIndex e) { return fabric.component(fabric.Vertex(e)); });
  for (const SwitchPartition& partition : middle.levels) {
    const std::string name = MiddleName(middle.shape, levels.size() - 1);
    Hierarchy::Level level = MakeLevel(fabric, name, [&](EndpointIndex e) {
      const uint32_t key = LeafKey(fabric, e);
      return key < fabric.switch_count() ? partition[key] : key;
    });
    if (level.group == levels.back().group || level.group == component.group) continue;
    levels.push_back(std::move(level));
  }
  levels.push_back(std::move(component));
  return hierarchy;
}

}  // namespace coppice
