// Groups of switches that are all joined to each other: dragonfly groups, PERCS supernodes, rows
// of a HyperX. Greedy by index: the lowest switch without a group takes the neighbour with which it
// shares most neighbours, and all that they share.
//
//     0 --- 1        4 --- 5        0 and 1 share 2 and 3; 3 and 4 share nothing: a global link
//     | \ / |        | \ / |
//     | / \ |        | / \ |        round 1: {0 1 2 3} {4 5 6 7}
//     2 --- 3 ------ 4 ... 7        round 2, on the groups as vertices: rows -> planes of a HyperX
//
// Links that share few neighbours, those between groups, are left out beforehand, and whom a
// missing cable kept out of its group joins it afterwards: a group may lack a few cables.
//
// A round counts only if half of a component's vertices find a group of three or more; else the
// component has no such structure on that level, and keeps what earlier rounds found. A round that
// counts leaves at most two thirds of the vertices, so that all rounds cost O(the first).
#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "daemon/fabric/hierarchy.h"

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
    absl::c_sort(row);
    row.erase(std::unique(row.begin(), row.end()), row.end());
  }
  return neighbours;
}

// Without the links that share less than half the neighbours that another link of either end
// shares: those between groups, which would lead on whom a missing cable left without a group.
Neighbours StrongLinks(const Neighbours& neighbours) {
  std::vector<std::vector<uint32_t>> shared(neighbours.size());
  std::vector<uint32_t> mark(neighbours.size(), kNoGroup), most(neighbours.size(), 0);
  for (uint32_t u = 0; u < neighbours.size(); ++u) {
    for (const uint32_t w : neighbours[u]) mark[w] = u;
    for (const uint32_t v : neighbours[u]) {
      const auto count = absl::c_count_if(neighbours[v], [&](uint32_t w) { return mark[w] == u; });
      shared[u].push_back(static_cast<uint32_t>(count));
      most[u] = std::max(most[u], shared[u].back());
    }
  }
  Neighbours strong(neighbours.size());
  for (uint32_t u = 0; u < neighbours.size(); ++u) {
    for (size_t i = 0; i < neighbours[u].size(); ++i) {
      const uint32_t v = neighbours[u][i];
      if (2 * shared[u][i] >= std::max(most[u], most[v])) strong[u].push_back(v);
    }
  }
  return strong;
}

class GreedyCliques {
 public:
  // Of strong links.
  explicit GreedyCliques(Neighbours neighbours)
      : neighbours_(std::move(neighbours)),
        group_(neighbours_.size(), kNoGroup),
        mark_(neighbours_.size(), kNoGroup),
        size_(neighbours_.size(), 0) {}

  // [vertex] lowest vertex of its group.
  SwitchPartition Find() {
    for (uint32_t u = 0; u < neighbours_.size(); ++u) {
      if (group_[u] != kNoGroup) continue;
      group_[u] = AlmostJoined(u);
      if (group_[u] == u) {
        for (const uint32_t w : Around(u)) {
          group_[w] = u;
          ++size_[u];
        }
      }
      ++size_[group_[u]];
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
    std::vector<std::pair<uint32_t, uint32_t>> shared;  // with each neighbour that is free
    uint32_t most = 0;
    for (const uint32_t v : neighbours_[u]) {
      if (group_[v] != kNoGroup) continue;
      shared.emplace_back(Shared(v), v);
      most = std::max(most, shared.back().first);
    }
    if (most == 0) return {};
    // The first that shares almost as many as any: a missing cable must not turn a HyperX's rows
    // into columns here and there.
    const uint32_t best =
        absl::c_find_if(shared, [most](const auto& s) { return 4 * s.first >= 3 * most; })->second;
    std::vector<uint32_t> others{best};
    for (const uint32_t w : neighbours_[best]) {
      if (mark_[w] == u && group_[w] == kNoGroup) others.push_back(w);
    }
    return Dense(std::move(others));
  }

  // Those that are joined to at least three quarters of all candidates, themselves counted.
  std::vector<uint32_t> Dense(std::vector<uint32_t> others) const {
    absl::c_sort(others);
    std::vector<uint32_t> dense;
    for (const uint32_t w : others) {
      size_t joined = 2;  // itself and u
      for (const uint32_t x : neighbours_[w]) {
        joined += absl::c_binary_search(others, x) ? 1 : 0;
      }
      if (4 * joined >= 3 * (others.size() + 1)) dense.push_back(w);
    }
    return dense.size() >= 2 ? dense : std::vector<uint32_t>{};
  }

  // The group that u is joined to at least half of: a missing cable kept u out of it. u itself if
  // there is none.
  uint32_t AlmostJoined(uint32_t u) {
    std::vector<uint32_t> groups;
    for (const uint32_t w : neighbours_[u]) {
      if (group_[w] != kNoGroup && size_[group_[w]] >= 3) groups.push_back(group_[w]);
    }
    absl::c_sort(groups);
    uint32_t best = u;
    size_t most = 0;
    for (size_t i = 0, end = 0; i < groups.size(); i = end) {
      while (end < groups.size() && groups[end] == groups[i]) ++end;
      if (end - i > most && 2 * (end - i) >= size_[groups[i]]) {
        most = end - i;
        best = groups[i];
      }
    }
    return best;
  }

  const Neighbours neighbours_;
  SwitchPartition group_;
  std::vector<uint32_t> mark_;
  std::vector<uint32_t> size_;  // [lowest vertex of a group]
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
// switches of a group share these out. Three quarters of all are enough: cables may be missing.
std::vector<std::string> Shapes(const Fabric& fabric, const SwitchPartition& group,
                                const std::vector<bool>& wanted) {
  const Neighbours reach = Quotient(fabric, group, wanted);
  std::vector<uint64_t> reached(fabric.component_count(), 0), reachable(fabric.component_count());
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    const uint32_t component = fabric.component(VertexIndex(s));
    if (!wanted[component]) continue;
    absl::flat_hash_set<uint32_t> own;
    for (const Channel& channel : fabric.switch_channels(SwitchIndex(s))) {
      const uint32_t other = group[channel.to.value()];
      if (other != group[s]) own.insert(other);
    }
    reached[component] += own.size();
    reachable[component] += reach[group[s]].size();
  }
  std::vector<std::string> shapes(fabric.component_count());
  for (uint32_t c = 0; c < shapes.size(); ++c) {
    shapes[c] = 4 * reached[c] >= 3 * reachable[c] ? "hyperx" : "dragonfly";
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
  while (absl::c_find(active, true) != active.end()) {
    const Neighbours neighbours = Quotient(fabric, group, active);
    const SwitchPartition found = GreedyCliques(StrongLinks(neighbours)).Find();
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
