#include "daemon/manager/sweep/hidden.h"

#include <utility>

#include "absl/container/flat_hash_set.h"

namespace coppice {
namespace {

using HiddenNodes = absl::flat_hash_map<Guid, HiddenNode>;

absl::flat_hash_set<Guid> GuidsOf(const Fabric& fabric) {
  absl::flat_hash_set<Guid> guids;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    guids.insert(fabric.switch_info(SwitchIndex(s)).guid);
  }
  for (uint32_t a = 0; a < fabric.adapter_count(); ++a) {
    guids.insert(fabric.adapter(AdapterIndex(a)).guid);
  }
  return guids;
}

Guid GuidOf(const Fabric& fabric, VertexIndex v) {
  return fabric.IsSwitch(v) ? fabric.switch_info(fabric.AsSwitch(v)).guid
                            : fabric.adapter(fabric.AsEndpoint(v)).guid;
}

// Adds the vertex's part of its node: an adapter is as many vertices as it has cabled ports.
void AddVertex(const Fabric& fabric, VertexIndex v, HiddenNodes& nodes) {
  HiddenNode& node = nodes[GuidOf(fabric, v)];
  node.is_switch = fabric.IsSwitch(v);
  node.name = node.is_switch ? fabric.switch_info(fabric.AsSwitch(v)).description
                             : NameOfAdapter(fabric, fabric.adapter(fabric.AsEndpoint(v)));
  for (const Channel& channel : fabric.channels(v)) {
    node.cables.emplace_back(GuidOf(fabric, channel.to), channel.to_port);
  }
}

// What was known before and is not there now.
HiddenNodes FindAbsent(const Fabric& now, const Fabric* before, const Unseen& unseen) {
  const absl::flat_hash_set<Guid> present = GuidsOf(now);
  HiddenNodes absent;
  if (unseen.hidden != nullptr) {
    for (const auto& [guid, node] : unseen.hidden->nodes) {
      if (!present.contains(guid)) absent.emplace(guid, node);
    }
  }
  // Silent ones stay out of `hidden`, but may be behind another silent switch by now.
  for (const SilentNode& node : unseen.silent) {
    if (node.guid == Guid() || present.contains(node.guid)) continue;
    HiddenNode& kept = absent[node.guid];
    kept.is_switch = node.is_switch;
    kept.name = node.name;
    kept.cables.emplace_back(node.neighbour, node.neighbour_port);
  }
  if (before == nullptr) return absent;
  for (uint32_t v = 0; v < before->vertex_count(); ++v) {
    const VertexIndex vertex(v);
    if (!present.contains(GuidOf(*before, vertex))) AddVertex(*before, vertex, absent);
  }
  return absent;
}

}  // namespace

absl::flat_hash_map<Guid, HiddenNode> FindHiddenNodes(const Fabric& now, const Fabric* before,
                                                      const std::vector<SilentNode>& silent,
                                                      const Unseen& unseen) {
  HiddenNodes absent = FindAbsent(now, before, unseen);
  absl::flat_hash_set<std::pair<Guid, PortNum>> silent_cables;
  std::vector<Guid> doubtful;  // through which nobody sees, in the order of the search
  for (const SilentNode& node : silent) {
    silent_cables.insert({node.neighbour, node.neighbour_port});
    if (node.guid == Guid()) continue;
    absent.erase(node.guid);
    doubtful.push_back(node.guid);
  }
  absl::flat_hash_map<Guid, std::vector<Guid>> cabled_to;
  HiddenNodes hidden;
  const auto hide = [&](Guid guid) {
    const auto node = absent.find(guid);
    if (node == absent.end()) return;
    if (node->second.is_switch) doubtful.push_back(guid);
    hidden.insert(absent.extract(node));
  };
  std::vector<Guid> first;
  for (const auto& [guid, node] : absent) {
    for (const auto& cable : node.cables) {
      cabled_to[cable.first].push_back(guid);
      if (silent_cables.contains(cable)) first.push_back(guid);
    }
  }
  for (const Guid guid : first) hide(guid);
  for (size_t i = 0; i < doubtful.size(); ++i) {
    const auto behind = cabled_to.find(doubtful[i]);
    if (behind == cabled_to.end()) continue;
    for (const Guid guid : behind->second) hide(guid);
  }
  return hidden;
}

std::string NameOfAdapter(const Fabric& fabric, const AdapterInfo& adapter) {
  const bool has_host = adapter.host.value() < fabric.host_count();
  return has_host ? std::string(fabric.host_name(adapter.host)) : adapter.description;
}

}  // namespace coppice
