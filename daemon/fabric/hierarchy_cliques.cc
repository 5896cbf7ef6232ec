// Groups of switches that are all joined to each other: dragonfly groups, PERCS supernodes, rows
// of a HyperX. Greedy by index: the lowest switch without a group takes the neighbour with which it
// shares most neighbours, and all that they share.
//
//     0 --- 1        4 --- 5        0 and 1 share 2 and 3; 3 and 4 share nothing: a global link
//     | \ / |        | \ / |
//     | / \ |        | / \ |        round 1: {0 1 2 3} {4 5 6 7}
//     2 --- 3 ------ 4 ... 7        round 2, on the groups as vertices: rows -> planes of a HyperX
//
// A round counts only if half of a component's vertices find a group of three or more; else the
// component has no such structure on that level, and keeps what earlier rounds found. A round that
// counts leaves at most two thirds of the vertices, so that all rounds cost O(the first).
#include <algorithm>
#include <utility>

#include "daemon/fabric/switch_partition.h"

namespace coppice {
namespace {

constexpr uint32_t kNoGroup = 0xffffffff;

// Simple graph: sorted neighbours without repetition; vertices are the lowest switches of groups.
using Neighbours = std::vector<std::vector<uint32_t>>;

Neighbours Quotient(const Fabric& fabric, const SwitchPartition& group,
                    const std::vector<bool>& wanted) {
  Neighbours neighbours(fabric.switch_count());
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    if (!wanted[fabric.component(VertexIndex(s))]) continue;
    for (const Channel& channel : fabric.switch_channels(SwitchIndex(s))) {
      const uint32_t other = group[channel.to.value()];
      if (other != group[s]) neighbours[group[s]].push_back(other);
    }
  }
  for (std::vector<uint32_t>& row : neighbours) {
    std::sort(row.begin(), row.end());
    row.erase(std::unique(row.begin(), row.end()), row.end());
  }
  return neighbours;
}

class GreedyCliques {
 public:
  explicit GreedyCliques(const Neighbours& neighbours)
      : neighbours_(neighbours),
        group_(neighbours.size(), kNoGroup),
        mark_(neighbours.size(), kNoGroup) {}

  // [vertex] lowest vertex of its group.
  SwitchPartition Find() {
    for (uint32_t u = 0; u < neighbours_.size(); ++u) {
      if (group_[u] != kNoGroup) continue;
      group_[u] = u;
      for (const uint32_t w : Around(u)) group_[w] = u;
    }
    return std::move(group_);
  }

 private:
  uint32_t Shared(uint32_t v) const {
    uint32_t shared = 0;
    for (const uint32_t w : neighbours_[v]) {
      shared += mark_[w] == current_ && group_[w] == kNoGroup ? 1 : 0;
    }
    return shared;
  }

  // The others of u's group; empty if u shares no neighbour with a neighbour.
  std::vector<uint32_t> Around(uint32_t u) {
    current_ = u;
    for (const uint32_t w : neighbours_[u]) mark_[w] = u;
    uint32_t best = u, most = 0;
    for (const uint32_t v : neighbours_[u]) {
      if (group_[v] != kNoGroup) continue;
      const uint32_t shared = Shared(v);
      if (shared > most) {
        most = shared;
        best = v;
      }
    }
    if (most == 0) return {};
    std::vector<uint32_t> others{best};
    for (const uint32_t w : neighbours_[best]) {
      if (mark_[w] == u && group_[w] == kNoGroup) others.push_back(w);
    }
    return Dense(std::move(others));
  }

  // Those that are joined to at least three quarters of all candidates, themselves counted.
  std::vector<uint32_t> Dense(std::vector<uint32_t> others) const {
    std::sort(others.begin(), others.end());
    std::vector<uint32_t> dense;
    for (const uint32_t w : others) {
      size_t joined = 2;  // itself and u
      for (const uint32_t x : neighbours_[w]) {
        joined += std::binary_search(others.begin(), others.end(), x) ? 1 : 0;
      }
      if (4 * joined >= 3 * (others.size() + 1)) dense.push_back(w);
    }
    return dense.size() >= 2 ? dense : std::vector<uint32_t>{};
  }

  const Neighbours& neighbours_;
  SwitchPartition group_;
  std::vector<uint32_t> mark_;
  uint32_t current_ = kNoGroup;
};

// [component] half of its vertices are in groups of three or more.
std::vector<bool> Grouped(const Fabric& fabric, const SwitchPartition& before,
                          const SwitchPartition& found) {
  std::vector<uint32_t> size(found.size(), 0);
  for (uint32_t v = 0; v < found.size(); ++v) {
    if (before[v] == v) ++size[found[v]];
  }
  std::vector<uint32_t> all(fabric.component_count(), 0), grouped(fabric.component_count(), 0);
  for (uint32_t v = 0; v < found.size(); ++v) {
    if (before[v] != v) continue;
    const uint32_t component = fabric.component(VertexIndex(v));
    ++all[component];
    grouped[component] += size[found[v]] >= 3 ? 1 : 0;
  }
  std::vector<bool> result(fabric.component_count());
  for (uint32_t c = 0; c < all.size(); ++c) result[c] = all[c] > 0 && 2 * grouped[c] >= all[c];
  return result;
}

// In a HyperX every switch reaches all the groups that its group reaches; in a dragonfly the
// switches of a group share these out.
std::vector<std::string> Shapes(const Fabric& fabric, const SwitchPartition& group,
                                const std::vector<bool>& wanted) {
  const Neighbours reach = Quotient(fabric, group, wanted);
  std::vector<std::string> shapes(fabric.component_count(), "hyperx");
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    if (!wanted[fabric.component(VertexIndex(s))]) continue;
    std::vector<uint32_t> own;
    for (const Channel& channel : fabric.switch_channels(SwitchIndex(s))) {
      const uint32_t other = group[channel.to.value()];
      if (other != group[s]) own.push_back(other);
    }
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    if (own != reach[group[s]]) shapes[fabric.component(VertexIndex(s))] = "dragonfly";
  }
  return shapes;
}

}  // namespace

SwitchPartitions PartitionByCliques(const Fabric& fabric, const std::vector<bool>& wanted) {
  SwitchPartitions result;
  result.fits.assign(fabric.component_count(), false);
  SwitchPartition group(fabric.switch_count());
  for (uint32_t s = 0; s < group.size(); ++s) group[s] = s;
  std::vector<bool> active = wanted;
  while (std::find(active.begin(), active.end(), true) != active.end()) {
    const Neighbours neighbours = Quotient(fabric, group, active);
    const SwitchPartition found = GreedyCliques(neighbours).Find();
    const std::vector<bool> grouped = Grouped(fabric, group, found);
    SwitchPartition next = group;
    for (uint32_t s = 0; s < group.size(); ++s) {
      const uint32_t component = fabric.component(VertexIndex(s));
      if (active[component] && grouped[component]) next[s] = found[group[s]];
    }
    for (uint32_t c = 0; c < active.size(); ++c) active[c] = active[c] && grouped[c];
    if (next == group) break;
    group = std::move(next);
    if (result.levels.empty()) {
      result.fits = active;
      result.shape = Shapes(fabric, group, active);
    }
    result.levels.push_back(group);
  }
  return result;
}

}  // namespace coppice
