#include "daemon/manager/sweep/unseen.h"

#include "absl/container/flat_hash_set.h"
#include "daemon/manager/inventory.h"

namespace coppice {
namespace {

using Cable = std::pair<Guid, PortNum>;

// The description of a switch, the host of an adapter or, without one, its description.
std::string LabelOf(const Fabric& fabric, VertexIndex v) {
  if (fabric.IsSwitch(v)) return fabric.switch_info(fabric.AsSwitch(v)).description;
  const AdapterInfo& adapter = fabric.adapter(fabric.AsEndpoint(v));
  const bool has_host = adapter.host.value() < fabric.host_count();
  return has_host ? std::string(fabric.host_name(adapter.host)) : adapter.description;
}

// Who the node is, if the fabric has it: by its GUID or, without one, as what is at the other end
// of the cable. The GUID stays 0 if nothing is. False: it is not there.
bool Identify(const Fabric& fabric, SilentNode& node) {
  std::optional<VertexIndex> vertex;
  if (node.guid != Guid()) {
    vertex = FindNode(fabric, node.guid);
  } else if (const std::optional<SwitchIndex> s = fabric.FindSwitch(node.neighbour)) {
    const ChannelIndex channel = fabric.channel_at(*s, node.neighbour_port);
    if (channel != kNoChannel) vertex = fabric.channel_to(channel);
  }
  if (!vertex) return false;
  node.is_switch = fabric.IsSwitch(*vertex);
  node.guid = NodeGuid(fabric, *vertex);
  node.name = LabelOf(fabric, *vertex);
  return true;
}

// Whether a place that has nothing now may have something.
class Doubt {
 public:
  Doubt(const std::vector<SilentNode>& silent, const HiddenPorts& hidden) : hidden_(hidden) {
    for (const SilentNode& node : silent) {
      cables_.insert({node.neighbour, node.neighbour_port});
      nodes_.insert(node.guid);
    }
  }
  bool MayBeAt(const HiddenPorts::Place& place) const {
    return hidden_.nodes.contains(place.attached) || nodes_.contains(place.attached) ||
           cables_.contains({place.attached, place.port});
  }

 private:
  const HiddenPorts& hidden_;
  absl::flat_hash_set<Cable> cables_;
  absl::flat_hash_set<Guid> nodes_;
};

void AddHidden(const Fabric& now, const Fabric& before, const Doubt& doubt, absl::Duration when,
               HiddenPorts& hidden) {
  for (uint32_t i = 0; i < before.endpoint_count(); ++i) {
    const EndpointIndex e(i);
    const Guid port = before.endpoint(e).port_guid;
    const std::optional<SwitchIndex> attached = before.attached_switch(e);
    if (!attached || now.FindEndpoint(port)) continue;
    const ChannelIndex down = Fabric::Reverse(before.uplink(e));
    const HiddenPorts::Place place{before.switch_info(*attached).guid,
                                   before.channel_from_port(down), when};
    if (doubt.MayBeAt(place)) hidden.ports.emplace(port, place);
  }
}

std::vector<SilentNode> FindSilent(const std::vector<UnansweredNode>& unanswered, const Fabric& now,
                                   const Fabric* before, const std::vector<SilentNode>& last) {
  absl::flat_hash_map<Cable, const SilentNode*> known;
  for (const SilentNode& node : last) known[{node.neighbour, node.neighbour_port}] = &node;
  absl::flat_hash_set<Cable> cables;
  absl::flat_hash_set<Guid> nodes;
  std::vector<SilentNode> silent;
  for (const UnansweredNode& entry : unanswered) {
    if (!entry.is_silent) continue;
    const Cable cable{entry.neighbour, entry.neighbour_port};
    SilentNode node{entry.neighbour, entry.neighbour_port, entry.node, false, ""};
    const bool is_new =
        entry.node != Guid() ? nodes.insert(entry.node).second : cables.insert(cable).second;
    if (!is_new) continue;
    if (!Identify(now, node) && before != nullptr) Identify(*before, node);
    if (const auto it = known.find(cable); node.guid == Guid() && it != known.end()) {
      node = *it->second;
    }
    silent.push_back(std::move(node));
  }
  return silent;
}

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

// Adds the vertex's part of its node: an adapter is as many vertices as it has cabled ports.
void AddVertex(const Fabric& fabric, VertexIndex v, HiddenNodes& nodes) {
  HiddenNode& node = nodes[NodeGuid(fabric, v)];
  node.is_switch = fabric.IsSwitch(v);
  node.name = LabelOf(fabric, v);
  for (const Channel& channel : fabric.channels(v)) {
    node.cables.emplace_back(NodeGuid(fabric, channel.to), channel.to_port);
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
    if (!present.contains(NodeGuid(*before, vertex))) AddVertex(*before, vertex, absent);
  }
  return absent;
}

}  // namespace

Unseen FindUnseen(const std::vector<UnansweredNode>& unanswered, const Fabric& now,
                  const Fabric* before, const Unseen& unseen, absl::Duration when) {
  Unseen result;
  result.silent = FindSilent(unanswered, now, before, unseen.silent);
  if (result.silent.empty()) return result;
  auto hidden = std::make_shared<HiddenPorts>();
  hidden->nodes = FindHiddenNodes(now, before, result.silent, unseen);
  const Doubt doubt(result.silent, *hidden);
  if (before == nullptr) {
    hidden->is_any = true;
    hidden->any_since = when;
  } else {
    AddHidden(now, *before, doubt, when, *hidden);
  }
  if (unseen.hidden != nullptr) {
    if (unseen.hidden->is_any && when - unseen.hidden->any_since < kUnseenPatience) {
      hidden->is_any = true;
      hidden->any_since = unseen.hidden->any_since;
    }
    for (const auto& [port, place] : unseen.hidden->ports) {
      if (!now.FindEndpoint(port) && doubt.MayBeAt(place)) hidden->ports[port] = place;
    }
  }
  result.hidden = std::move(hidden);
  return result;
}

absl::Duration HiddenSince(const Unseen& unseen, Guid port_guid) {
  if (unseen.hidden == nullptr) return absl::InfiniteDuration();
  const auto it = unseen.hidden->ports.find(port_guid);
  if (it != unseen.hidden->ports.end()) return it->second.since;
  return unseen.hidden->is_any ? unseen.hidden->any_since : absl::InfiniteDuration();
}

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

std::optional<VertexIndex> FindNode(const Fabric& fabric, Guid node) {
  if (const auto s = fabric.FindSwitch(node)) return fabric.Vertex(*s);
  for (uint32_t port = 1; port < 255; ++port) {
    const auto endpoint = fabric.FindEndpoint(node, PortNum(static_cast<uint8_t>(port)));
    if (endpoint) return fabric.Vertex(*endpoint);
  }
  return std::nullopt;
}

}  // namespace coppice
