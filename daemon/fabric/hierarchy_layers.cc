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
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "daemon/fabric/switch_partition.h"

namespace coppice {
namespace {

constexpr uint32_t kNoLayer = std::numeric_limits<uint32_t>::max();

// Lowest member of each group is its root.
class DisjointSets {
 public:
  explicit DisjointSets(uint32_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), 0U);
  }
  uint32_t Find(uint32_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void Unite(uint32_t a, uint32_t b) {
    a = Find(a);
    b = Find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }
  SwitchPartition Roots() {
    SwitchPartition roots(parent_.size());
    for (uint32_t x = 0; x < roots.size(); ++x) roots[x] = Find(x);
    return roots;
  }

 private:
  std::vector<uint32_t> parent_;
};

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
  return std::all_of(channels.begin(), channels.end(),
                     [&](const Channel& c) { return layer[c.to.value()] < layer[s]; });
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
  const uint32_t top = tops.empty() ? 0 : *std::max_element(tops.begin(), tops.end());
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
    levels.push_back(sets.Roots());
  }
  return levels;
}

}  // namespace

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
