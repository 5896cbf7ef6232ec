#include "daemon/manager/distances/node_levels.h"

#include <optional>

#include "absl/container/flat_hash_map.h"

namespace coppice {

uint32_t LevelOf(const SwitchDistances& distances, EndpointIndex a, EndpointIndex b) {
  const Fabric& fabric = distances.fabric();
  const std::optional<SwitchIndex> s = fabric.attached_switch(a), t = fabric.attached_switch(b);
  if (s.has_value() && t.has_value()) {
    const uint8_t between = distances.Between(*s, *t);
    return between == SwitchDistances::kUnreachable ? kApart : between + 2u;
  }
  return distances.Hops(fabric.Vertex(a), fabric.Vertex(b)).value_or(kApart);
}

NodeLevels LevelsOf(const Snapshot& snapshot, const std::vector<std::string>& hosts) {
  const Fabric& fabric = *snapshot.fabric;
  NodeLevels levels;
  std::vector<std::optional<EndpointIndex>> representatives;  // [group]; none: not in the fabric
  absl::flat_hash_map<uint32_t, uint32_t> group_of_switch;
  std::optional<uint32_t> strangers;
  for (const std::string& name : hosts) {
    const std::optional<HostIndex> host = fabric.FindHost(name);
    const auto next = static_cast<uint32_t>(representatives.size());
    if (!host.has_value()) {
      if (!strangers.has_value()) {
        strangers = next;
        representatives.push_back(std::nullopt);
      }
      levels.group.push_back(*strangers);
      continue;
    }
    const EndpointIndex endpoint = fabric.endpoints_of_host(*host).front();
    const std::optional<SwitchIndex> leaf = fabric.attached_switch(endpoint);
    // Back to back: a group of its own.
    const uint32_t group =
        leaf.has_value() ? group_of_switch.try_emplace(leaf->value(), next).first->second : next;
    if (group == next) representatives.push_back(endpoint);
    levels.group.push_back(group);
  }
  levels.group_count = static_cast<uint32_t>(representatives.size());
  levels.level = [&snapshot, representatives](uint32_t a, uint32_t b) {
    if (!representatives[a].has_value() || !representatives[b].has_value()) return kApart;
    return LevelOf(snapshot.routes->distances(), *representatives[a], *representatives[b]);
  };
  return levels;
}

}  // namespace coppice
