// Levels of the hierarchy from four views of the switches, tried in this order:
//
//   coordinates     torus, mesh, hypercube    line < plane < block       hierarchy_grid.cc
//   product         the same without names    line < plane < block hierarchy_grid.cc
//   layers          fat tree, dragonfly+      pod < pod 2 < ...          hierarchy.cc
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
#include <limits>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace coppice {
namespace {

constexpr size_t kMaxDimensions = 32;
constexpr int32_t kMaxExtent = 1 << 20;

std::optional<GridKind> ParseKind(absl::string_view word) {
  for (const GridKind kind : {GridKind::kTorus, GridKind::kMesh, GridKind::kHypercube}) {
    if (word == ToString(kind)) return kind;
  }
  return std::nullopt;
}

// "4x4x2" split at 'x', each part a plain number below `limit`.
std::optional<std::vector<int32_t>> ParseNumbers(absl::string_view text, char separator,
                                                 int32_t limit) {
  std::vector<int32_t> numbers;
  for (const absl::string_view part : absl::StrSplit(text, separator)) {
    int32_t number = 0;
    const bool digits = !part.empty() && part.size() <= 7 &&
                        part.find_first_not_of("0123456789") == absl::string_view::npos;
    if (!digits || !absl::SimpleAtoi(part, &number) || number >= limit) return std::nullopt;
    if (numbers.size() == kMaxDimensions) return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

bool IsConsistent(const GridPosition& position) {
  if (position.at.size() != position.extents.size()) return false;
  for (size_t d = 0; d < position.at.size(); ++d) {
    if (position.at[d] >= position.extents[d]) return false;
    if (position.kind == GridKind::kHypercube && position.extents[d] != 2) return false;
  }
  return true;
}

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
  return static_cast<uint32_t>(absl::c_max_element(size) - size.begin());
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

// Layers of a tree-like fabric. A switch's layer is its distance from the switches that hosts are
// cabled to; a pod is what stays joined when every layer above the pod's is taken away.
//
//     layer 2      T0    T1          (taken away for the first cut)
//                 /  \  /  \.
//     layer 1   S0   S1 S2  S3       cut at 1: {S0 S1 A B} {S2 S3 C D} are two pods; only links
//               | \ / | | \ / |      between different layers join, so that groups whose top
//     layer 0   A    B  C    D       switches are joined directly (dragonfly+) come apart, too
//
// A spine with a few hosts of its own (a subnet manager, storage) is no leaf: a switch counts as a
// leaf if it has at least a quarter of the most endpoints on one switch of its component. One that
// has fewer and yet hangs below others is a leaf all the same.
//
// The top is the highest layer below which at most a tenth of the links join equals and above which
// there is at most a tenth of the links: a management switch that hangs on two spines of a
// dragonfly+ makes no layer. Without such a layer the fabric is no tree and the method does not
// fit.

constexpr uint32_t kNoLayer = std::numeric_limits<uint32_t>::max();

uint32_t EndpointsOn(const Fabric& fabric, uint32_t s) {
  return static_cast<uint32_t>(fabric.endpoint_channels(SwitchIndex(s)).size());
}

std::vector<uint32_t> LayersAbove(const Fabric& fabric, const std::vector<bool>& leaf) {
  std::vector<uint32_t> layer(fabric.switch_count(), kNoLayer);
  std::vector<uint32_t> queue;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    if (!leaf[s]) continue;
    layer[s] = 0;
    queue.push_back(s);
  }
  for (size_t head = 0; head < queue.size(); ++head) {
    for (const Channel& channel : fabric.switch_channels(SwitchIndex(queue[head]))) {
      if (layer[channel.to.value()] != kNoLayer) continue;
      layer[channel.to.value()] = layer[queue[head]] + 1;
      queue.push_back(channel.to.value());
    }
  }
  return layer;
}

// Below all its neighbours in the tree, although the layers put it above them.
bool HangsBelow(const Fabric& fabric, const std::vector<uint32_t>& layer, uint32_t s) {
  if (layer[s] < 2 || layer[s] == kNoLayer) return false;
  const auto channels = fabric.switch_channels(SwitchIndex(s));
  return absl::c_all_of(channels, [&](const Channel& c) { return layer[c.to.value()] < layer[s]; });
}

std::vector<uint32_t> Layers(const Fabric& fabric) {
  std::vector<uint32_t> most(fabric.component_count(), 0);
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    uint32_t& entry = most[fabric.component(VertexIndex(s))];
    entry = std::max(entry, EndpointsOn(fabric, s));
  }
  std::vector<bool> leaf(fabric.switch_count());
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    const uint32_t endpoints = EndpointsOn(fabric, s);
    leaf[s] = endpoints > 0 && 4 * endpoints >= most[fabric.component(VertexIndex(s))];
  }
  const std::vector<uint32_t> layer = LayersAbove(fabric, leaf);
  bool changed = false;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    if (leaf[s] || EndpointsOn(fabric, s) == 0 || !HangsBelow(fabric, layer, s)) continue;
    leaf[s] = true;
    changed = true;
  }
  return changed ? LayersAbove(fabric, leaf) : layer;
}

bool BetweenSwitches(const Fabric& fabric, const LinkInfo& link) {
  return link.a != link.b && fabric.IsSwitch(link.a) && fabric.IsSwitch(link.b);
}

// Links between the switches of one component, by layer.
struct LayerLinks {
  std::vector<uint64_t> level;     // both ends on it
  std::vector<uint64_t> climbing;  // the upper end on it
};

std::vector<LayerLinks> CountLinks(const Fabric& fabric, const std::vector<uint32_t>& layer) {
  std::vector<LayerLinks> counts(fabric.component_count());
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    if (layer[s] == kNoLayer) continue;
    LayerLinks& links = counts[fabric.component(VertexIndex(s))];
    if (layer[s] < links.level.size()) continue;
    links.level.resize(layer[s] + 1, 0);
    links.climbing.resize(layer[s] + 1, 0);
  }
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    const LinkInfo& link = fabric.link(LinkIndex(l));
    if (!BetweenSwitches(fabric, link)) continue;
    const uint32_t a = layer[link.a.value()], b = layer[link.b.value()];
    if (a == kNoLayer || b == kNoLayer) continue;  // no endpoint at all in this component
    LayerLinks& links = counts[fabric.component(link.a)];
    ++(a == b ? links.level : links.climbing)[std::max(a, b)];
  }
  return counts;
}

// The top layer of a component; nullopt: it is no tree. A single switch is a tree of layer 0.
std::optional<uint32_t> TopLayer(const LayerLinks& links) {
  uint64_t all = 0, below = 0;  // `below`: links between equals below layer t
  for (size_t k = 0; k < links.level.size(); ++k) {
    all += links.level[k] + links.climbing[k];
    below += links.level[k];
  }
  if (all == 0) return 0;
  uint64_t above = 0;
  for (size_t t = links.level.size(); t-- > 1;) {
    below -= links.level[t];
    if (10 * below <= all && 10 * above <= all) return static_cast<uint32_t>(t);
    above += links.level[t] + links.climbing[t];
  }
  return std::nullopt;
}

// One partition a layer from the first on: what is joined by links that climb, up to that layer and
// to the component's top, `tops`.
std::vector<SwitchPartition> Cut(const Fabric& fabric, const std::vector<uint32_t>& layer,
                                 const std::vector<uint32_t>& tops) {
  const uint32_t top = tops.empty() ? 0 : *absl::c_max_element(tops);
  std::vector<std::vector<LinkIndex>> climbing(top + 1);  // by the layer of the upper end
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    const LinkInfo& link = fabric.link(LinkIndex(l));
    if (!BetweenSwitches(fabric, link)) continue;
    const uint32_t a = layer[link.a.value()], b = layer[link.b.value()];
    if (a != b && std::max(a, b) <= tops[fabric.component(link.a)]) {
      climbing[std::max(a, b)].push_back(LinkIndex(l));
    }
  }
  std::vector<SwitchPartition> levels;
  DisjointSets sets(fabric.switch_count());
  for (uint32_t k = 1; k <= top; ++k) {
    for (const LinkIndex l : climbing[k]) {
      sets.Unite(fabric.link(l).a.value(), fabric.link(l).b.value());
    }
    SwitchPartition& partition = levels.emplace_back(fabric.switch_count());
    for (uint32_t s = 0; s < partition.size(); ++s) partition[s] = sets.Find(s);
  }
  return levels;
}

}  // namespace

absl::string_view ToString(GridKind kind) {
  switch (kind) {
    case GridKind::kTorus:
      return "torus";
    case GridKind::kMesh:
      return "mesh";
    case GridKind::kHypercube:
      return "hypercube";
  }
  return "unknown";
}

std::string FormatPosition(absl::string_view name, const GridPosition& position) {
  return absl::StrCat(name, "(", absl::StrJoin(position.at, ","), ";",
                      absl::StrJoin(position.extents, "x"), " ", ToString(position.kind), ")");
}

std::optional<GridPosition> ParsePosition(absl::string_view description) {
  if (description.empty() || description.back() != ')') return std::nullopt;
  const size_t open = description.rfind('(');
  if (open == absl::string_view::npos) return std::nullopt;
  const absl::string_view inside = description.substr(open + 1, description.size() - open - 2);
  const size_t semicolon = inside.find(';');
  const size_t blank = inside.rfind(' ');
  if (semicolon == absl::string_view::npos || blank == absl::string_view::npos ||
      blank < semicolon) {
    return std::nullopt;
  }
  const auto at = ParseNumbers(inside.substr(0, semicolon), ',', kMaxExtent);
  const auto extents =
      ParseNumbers(inside.substr(semicolon + 1, blank - semicolon - 1), 'x', kMaxExtent + 1);
  const auto kind = ParseKind(inside.substr(blank + 1));
  if (!at || !extents || !kind) return std::nullopt;
  GridPosition position{*at, *extents, *kind};
  if (!IsConsistent(position)) return std::nullopt;
  return position;
}

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

std::vector<uint32_t> OrderByNearness(const Hierarchy& hierarchy,
                                      absl::Span<const EndpointIndex> members, uint32_t first) {
  std::vector<uint32_t> order(members.size());
  absl::c_iota(order, 0U);
  const auto is_before = [&](uint32_t a, uint32_t b) {
    for (auto level = hierarchy.levels.rbegin(); level != hierarchy.levels.rend(); ++level) {
      const auto group = [&](uint32_t member) { return level->group[members[member].value()]; };
      const uint32_t of_a = group(a), of_b = group(b);
      if (of_a == of_b) continue;
      const uint32_t first_group = group(first);
      return of_a == first_group || (of_b != first_group && of_a < of_b);
    }
    return a == first || (b != first && a < b);
  };
  absl::c_sort(order, is_before);
  return order;
}

SwitchPartitions PartitionByLayers(const Fabric& fabric) {
  const std::vector<uint32_t> layer = Layers(fabric);
  const std::vector<LayerLinks> links = CountLinks(fabric, layer);
  SwitchPartitions result;
  result.fits.assign(fabric.component_count(), false);
  result.shape.assign(fabric.component_count(), "fat tree");
  std::vector<uint32_t> tops(fabric.component_count(), 0);
  for (uint32_t c = 0; c < links.size(); ++c) {
    const std::optional<uint32_t> top = TopLayer(links[c]);
    result.fits[c] = top.has_value();
    tops[c] = top.value_or(0);
  }
  result.levels = Cut(fabric, layer, tops);
  if (result.levels.empty()) return result;
  // Groups that only links between equals join: the tops of a dragonfly+'s groups.
  std::vector<uint32_t> first(fabric.component_count(), kNoLayer);
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    uint32_t& group = first[fabric.component(VertexIndex(s))];
    const uint32_t mine = result.levels.back()[s];
    if (group == kNoLayer) group = mine;
    if (group != mine) result.shape[fabric.component(VertexIndex(s))] = "dragonfly";
  }
  return result;
}

}  // namespace coppice
