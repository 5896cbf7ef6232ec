#include "tests/benchmark/placement/rules.h"

#include <algorithm>
#include <utility>

namespace coppice {
namespace {

bool IsFree(const Occupancy& occupancy, HostIndex h) {
  return occupancy.holder[h.value()] == Occupancy::kFree;
}

// Leaf switches and free hosts of a switch of Slurm's tree.
struct TreeSwitch {
  std::vector<uint32_t> leaves;
  uint32_t free = 0;
};

// The switches of one level; `level` is the hierarchy's.
std::vector<TreeSwitch> SwitchesOf(const Fabric& fabric, const Hierarchy::Level& level,
                                   const PlacementIndex& index,
                                   const std::vector<uint32_t>& free_of_leaf) {
  std::vector<TreeSwitch> switches(level.group_count);
  for (uint32_t l = 0; l < index.leaf_count(); ++l) {
    const auto endpoints = fabric.endpoints_of_host(index.hosts(l).front());
    const EndpointIndex first = *std::min_element(endpoints.begin(), endpoints.end());
    TreeSwitch& s = switches[level.group[first.value()]];
    s.leaves.push_back(l);
    s.free += free_of_leaf[l];
  }
  return switches;
}

}  // namespace

std::vector<HostIndex> FirstFit(const PlacementIndex& index, const Occupancy& occupancy,
                                uint32_t count) {
  std::vector<HostIndex> hosts;
  for (uint32_t h = 0; h < index.host_count() && hosts.size() < count; ++h) {
    if (IsFree(occupancy, HostIndex(h))) hosts.emplace_back(h);
  }
  return hosts;
}

std::vector<HostIndex> SlurmTree(const Snapshot& snapshot, const PlacementIndex& index,
                                 const Occupancy& occupancy, uint32_t count) {
  std::vector<uint32_t> free_of_leaf(index.leaf_count(), 0);
  for (const HostIndex h : index.hosts_by_leaf()) {
    free_of_leaf[index.leaf_of(h)] += IsFree(occupancy, h) ? 1 : 0;
  }
  TreeSwitch best;
  for (size_t level = 1; level < snapshot.hierarchy->levels.size() && best.free == 0; ++level) {
    for (TreeSwitch& s :
         SwitchesOf(*snapshot.fabric, snapshot.hierarchy->levels[level], index, free_of_leaf)) {
      if (s.free >= count && (best.free == 0 || s.free < best.free)) best = std::move(s);
    }
  }
  std::vector<HostIndex> hosts;
  while (hosts.size() < count) {
    const auto rest = static_cast<uint32_t>(count - hosts.size());
    const auto better = [&](uint32_t a, uint32_t b) {
      const uint32_t of_a = free_of_leaf[a], of_b = free_of_leaf[b];
      if ((of_a >= rest) != (of_b >= rest)) return of_a >= rest;
      return of_a >= rest ? of_a < of_b : of_a > of_b;
    };
    const uint32_t leaf = *std::min_element(best.leaves.begin(), best.leaves.end(), better);
    for (const HostIndex h : index.hosts(leaf)) {
      if (IsFree(occupancy, h) && hosts.size() < count) hosts.push_back(h);
    }
    free_of_leaf[leaf] = 0;
  }
  return hosts;
}

}  // namespace coppice
