#include "daemon/manager/inventory.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

auto Fields(const SwitchInfo& info) {
  return std::tie(info.guid, info.lid, info.port_count, info.device_id, info.vendor_id,
                  info.description);
}
auto Fields(const AdapterInfo& info) {
  return std::tie(info.guid, info.kind, info.port_count, info.device_id, info.vendor_id, info.host,
                  info.description);
}
auto Fields(const EndpointInfo& info) {
  return std::tie(info.port_guid, info.adapter, info.port, info.lid, info.lmc);
}
auto Fields(const LinkInfo& info) {
  return std::tie(info.a, info.b, info.a_port, info.b_port, info.rate, info.capacity_gbps);
}

void AddNodes(const Fabric& fabric, std::vector<NodeRecord>& nodes) {
  nodes.reserve(fabric.switch_count() + fabric.adapter_count());
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    const SwitchInfo& info = fabric.switch_info(SwitchIndex(s));
    nodes.push_back({info.guid, NodeKind::kSwitch, info.description, "", info.vendor_id,
                     info.device_id, info.port_count});
  }
  for (uint32_t a = 0; a < fabric.adapter_count(); ++a) {
    const AdapterInfo& info = fabric.adapter(AdapterIndex(a));
    const NodeKind kind =
        info.kind == AdapterKind::kRouter ? NodeKind::kRouter : NodeKind::kChannelAdapter;
    const bool has_host = info.host.value() < fabric.host_count();
    nodes.push_back({info.guid, kind, info.description,
                     has_host ? std::string(fabric.host_name(info.host)) : std::string(),
                     info.vendor_id, info.device_id, info.port_count});
  }
}

void AddPorts(const Fabric& fabric, std::vector<PortRecord>& ports) {
  ports.reserve(fabric.vertex_count());
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    const SwitchInfo& info = fabric.switch_info(SwitchIndex(s));
    ports.push_back({info.guid, 0, info.guid, info.lid.value()});
  }
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
    const EndpointInfo& info = fabric.endpoint(EndpointIndex(e));
    ports.push_back(
        {fabric.adapter(info.adapter).guid, info.port.value(), info.port_guid, info.lid.value()});
  }
}

// Shell pattern: * stands for any characters, ? for one, which in UTF-8 may be several bytes. On a
// mismatch only the last * is widened, which suffices because an earlier one could give nothing
// that the last cannot. O(pattern * text).
bool MatchesPattern(absl::string_view pattern, absl::string_view text) {
  size_t p = 0, t = 0;
  size_t star = absl::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && pattern[p] == '?') {
      ++p;
      t += std::max<size_t>(FirstCharacter(text.substr(t)).bytes, 1);
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool Matches(const CapabilityRule& rule, const SwitchInfo& info) {
  return (!rule.guid || *rule.guid == info.guid) &&
         (!rule.description || MatchesPattern(*rule.description, info.description)) &&
         (!rule.vendor_id || *rule.vendor_id == info.vendor_id) &&
         (!rule.device_id || *rule.device_id == info.device_id);
}

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

Guid NodeGuid(const Fabric& fabric, VertexIndex v) {
  return fabric.IsSwitch(v) ? fabric.switch_info(fabric.AsSwitch(v)).guid
                            : fabric.adapter(fabric.AsEndpoint(v)).guid;
}

std::string NodeName(const Fabric& fabric, VertexIndex v) {
  std::string name;
  if (fabric.IsSwitch(v)) {
    name = fabric.switch_info(fabric.AsSwitch(v)).description;
  } else {
    name = std::string(fabric.host_name(fabric.host(fabric.AsEndpoint(v))));
  }
  return name.empty() ? ToString(NodeGuid(fabric, v)) : name;
}

std::vector<LinkRecord> LinksOf(const Fabric& fabric) {
  std::vector<LinkRecord> links;
  links.reserve(fabric.link_count());
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    const LinkInfo& info = fabric.link(LinkIndex(l));
    LinkRecord record{NodeGuid(fabric, info.a), info.a_port.value(), NodeGuid(fabric, info.b),
                      info.b_port.value(),      ToString(info.rate), info.capacity_gbps};
    if (std::tie(record.node_b, record.port_b) < std::tie(record.node_a, record.port_a)) {
      std::swap(record.node_a, record.node_b);
      std::swap(record.port_a, record.port_b);
    }
    links.push_back(std::move(record));
  }
  return links;
}

PutInventory InventoryOf(const Fabric& fabric, absl::Time time) {
  PutInventory inventory;
  inventory.fabric_version = fabric.version();
  inventory.time = time;
  AddNodes(fabric, inventory.nodes);
  AddPorts(fabric, inventory.ports);
  inventory.links = LinksOf(fabric);
  return inventory;
}

bool SameFabric(const Fabric& a, const Fabric& b) {
  if (a.switch_count() != b.switch_count() || a.adapter_count() != b.adapter_count() ||
      a.endpoint_count() != b.endpoint_count() || a.link_count() != b.link_count()) {
    return false;
  }
  for (uint32_t i = 0; i < a.switch_count(); ++i) {
    const SwitchIndex s(i);
    if (Fields(a.switch_info(s)) != Fields(b.switch_info(s))) return false;
  }
  for (uint32_t i = 0; i < a.adapter_count(); ++i) {
    const AdapterIndex n(i);
    if (Fields(a.adapter(n)) != Fields(b.adapter(n))) return false;
  }
  for (uint32_t i = 0; i < a.endpoint_count(); ++i) {
    const EndpointIndex e(i);
    if (Fields(a.endpoint(e)) != Fields(b.endpoint(e))) return false;
  }
  for (uint32_t i = 0; i < a.link_count(); ++i) {
    const LinkIndex l(i);
    if (Fields(a.link(l)) != Fields(b.link(l))) return false;
  }
  return true;
}

bool SameTables(const ForwardingTables* a, const ForwardingTables* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return *a == *b;
}

std::vector<CapabilityRecord> ApplyRules(const Fabric& fabric,
                                         const std::vector<CapabilityRule>& rules) {
  std::vector<CapabilityRecord> records;
  records.reserve(fabric.switch_count());
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    const SwitchInfo& info = fabric.switch_info(SwitchIndex(s));
    CapabilityRecord record;
    record.guid = info.guid;
    for (const CapabilityRule& rule : rules) {
      if (!Matches(rule, info)) continue;
      record.entries_total = rule.entries;
      record.entries_reserved = rule.reserved;
      record.degree_limit = rule.degree_limit;
      break;
    }
    records.push_back(record);
  }
  return records;
}

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
