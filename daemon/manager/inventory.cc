#include "daemon/manager/inventory.h"

#include <algorithm>
#include <tuple>
#include <utility>

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

}  // namespace coppice
