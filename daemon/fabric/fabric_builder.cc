#include "daemon/fabric/fabric_builder.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

absl::Status DuplicateNode(Guid guid) {
  return absl::InvalidArgumentError(
      absl::StrCat("node ", ToString(guid), " appears twice: node GUIDs must be unique"));
}

std::string PortName(Guid node, PortNum port) {
  return absl::StrCat("port ", static_cast<int>(port.value()), " of node ", ToString(node));
}

}  // namespace

std::pair<absl::string_view, absl::string_view> SplitNodeDescription(
    absl::string_view description) {
  static constexpr std::array<absl::string_view, 14> kDevices = {
      "HCA",  "mlx", "hfi",  "qib",   "ib",    "mthca", "nes",
      "cxgb", "hns", "bnxt", "irdma", "erdma", "efa",   "rxe"};
  description = absl::StripAsciiWhitespace(description);
  const size_t space = description.find_last_of(" \t");
  if (space == absl::string_view::npos) return {description, {}};
  const absl::string_view last = description.substr(space + 1);
  const bool is_device = absl::ascii_isdigit(static_cast<unsigned char>(last.back())) &&
                         std::any_of(kDevices.begin(), kDevices.end(), [&](absl::string_view d) {
                           return absl::StartsWith(last, d);
                         });
  if (!is_device) return {description, {}};
  return {absl::StripAsciiWhitespace(description.substr(0, space)), last};
}

absl::Status FabricBuilder::AddSwitch(SwitchInfo info) {
  const Node node{true, static_cast<uint32_t>(switches_.size()), info.port_count};
  if (!nodes_.try_emplace(info.guid, node).second) return DuplicateNode(info.guid);
  switches_.push_back(std::move(info));
  return absl::OkStatus();
}

absl::Status FabricBuilder::AddAdapter(AdapterInfo info) {
  const Node node{false, static_cast<uint32_t>(adapters_.size()), info.port_count};
  if (!nodes_.try_emplace(info.guid, node).second) return DuplicateNode(info.guid);
  adapters_.push_back(std::move(info));
  return absl::OkStatus();
}

absl::Status FabricBuilder::CheckPort(const PortKey& key) const {
  const auto it = nodes_.find(key.node);
  if (it == nodes_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("node ", ToString(key.node), " is named by a cable but is not in the fabric"));
  }
  if (key.port.value() == 0 || key.port.value() > it->second.port_count) {
    return absl::InvalidArgumentError(absl::StrCat(PortName(key.node, key.port),
                                                   " does not exist: the node has ports 1 to ",
                                                   static_cast<int>(it->second.port_count)));
  }
  return absl::OkStatus();
}

absl::Status FabricBuilder::SetAdapterPort(Guid adapter, PortNum port, Guid port_guid, Lid lid,
                                           uint8_t lmc) {
  const PortKey key{adapter, port};
  RETURN_IF_ERROR(CheckPort(key));
  if (nodes_.at(adapter).is_switch) {
    return absl::InvalidArgumentError(
        absl::StrCat("node ", ToString(adapter), " is a switch: its ports have no GUIDs"));
  }
  if (lmc > 7) {
    return absl::InvalidArgumentError(
        absl::StrCat(PortName(adapter, port), ": LMC ", static_cast<int>(lmc), " is not in 0..7"));
  }
  adapter_ports_[key] = AdapterPort{port_guid, lid, lmc};
  return absl::OkStatus();
}

absl::Status FabricBuilder::AddLink(Guid a, PortNum a_port, Guid b, PortNum b_port, LinkRate rate,
                                    float capacity_gbps) {
  Cable cable{{a, a_port}, {b, b_port}, rate, capacity_gbps};
  RETURN_IF_ERROR(CheckPort(cable.a));
  RETURN_IF_ERROR(CheckPort(cable.b));
  if (cable.b < cable.a) std::swap(cable.a, cable.b);
  if (cable.a == cable.b) {
    return absl::InvalidArgumentError(
        absl::StrCat(PortName(a, a_port), " is cabled to itself: remove the line"));
  }
  for (const PortKey& end : {cable.a, cable.b}) {
    const auto it = cabled_.find(end);
    if (it == cabled_.end()) continue;
    Cable& known = cables_[it->second];
    if (known.a != cable.a || known.b != cable.b) {
      const PortKey& other = known.a == end ? known.b : known.a;
      const PortKey& now = cable.a == end ? cable.b : cable.a;
      return absl::InvalidArgumentError(
          absl::StrCat(PortName(end.node, end.port), " is cabled twice: to ",
                       PortName(other.node, other.port), " and to ", PortName(now.node, now.port)));
    }
    if (known.rate == LinkRate{}) known.rate = rate;
    if (known.capacity_gbps == 0) known.capacity_gbps = capacity_gbps;
    return absl::OkStatus();
  }
  const auto index = static_cast<uint32_t>(cables_.size());
  cabled_.emplace(cable.a, index);
  cabled_.emplace(cable.b, index);
  cables_.push_back(cable);
  return absl::OkStatus();
}

// Sorts switches and adapters by GUID and makes nodes_ point to the new places.
void FabricBuilder::SortNodes(Fabric& fabric) {
  const auto by_guid = [](const auto& x, const auto& y) { return x.guid < y.guid; };
  std::sort(switches_.begin(), switches_.end(), by_guid);
  std::sort(adapters_.begin(), adapters_.end(), by_guid);
  for (uint32_t i = 0; i < switches_.size(); ++i) nodes_[switches_[i].guid].index = i;
  for (uint32_t i = 0; i < adapters_.size(); ++i) nodes_[adapters_[i].guid].index = i;
  fabric.switches_ = std::move(switches_);
  fabric.adapters_ = std::move(adapters_);
}

void FabricBuilder::NameHosts(Fabric& fabric) const {
  using Description = std::pair<absl::string_view, absl::string_view>;
  absl::flat_hash_map<Description, uint32_t> uses;
  std::vector<Description> parts(fabric.adapters_.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i] = SplitNodeDescription(fabric.adapters_[i].description);
    ++uses[parts[i]];
  }
  std::vector<std::pair<std::string, uint32_t>> named(parts.size());  // host name, adapter
  for (uint32_t i = 0; i < parts.size(); ++i) {
    const std::string guid = ToString(fabric.adapters_[i].guid);
    std::string name = parts[i].first.empty() ? guid : std::string(parts[i].first);
    if (!parts[i].first.empty() && uses[parts[i]] > 1) absl::StrAppend(&name, "#", guid);
    named[i] = {std::move(name), i};
  }
  std::sort(named.begin(), named.end());
  for (auto& [name, adapter] : named) {
    if (fabric.host_names_.empty() || fabric.host_names_.back() != name) {
      fabric.host_names_.push_back(std::move(name));
    }
    fabric.adapters_[adapter].host =
        HostIndex(static_cast<uint32_t>(fabric.host_names_.size() - 1));
  }
}

// One endpoint for every cabled adapter port, by adapter and port; and the rows of each host.
void FabricBuilder::AddEndpoints(Fabric& fabric) const {
  for (const auto& [key, cable] : cabled_) {
    const Node& node = nodes_.at(key.node);
    if (node.is_switch) continue;
    EndpointInfo info;
    info.adapter = AdapterIndex(node.index);
    info.port = key.port;
    if (const auto it = adapter_ports_.find(key); it != adapter_ports_.end()) {
      info.port_guid = it->second.port_guid;
      info.lid = it->second.lid;
      info.lmc = it->second.lmc;
    }
    // Files without port GUIDs: the node GUID plus the port, as vendors number them.
    if (info.port_guid == Guid()) info.port_guid = Guid(key.node.value() + key.port.value());
    fabric.endpoints_.push_back(info);
  }
  std::sort(fabric.endpoints_.begin(), fabric.endpoints_.end(),
            [](const EndpointInfo& x, const EndpointInfo& y) {
              return std::pair(x.adapter, x.port) < std::pair(y.adapter, y.port);
            });

  fabric.host_begin_.assign(fabric.host_count() + 1, 0);
  for (const EndpointInfo& e : fabric.endpoints_) {
    ++fabric.host_begin_[fabric.adapter(e.adapter).host.value() + 1];
  }
  std::partial_sum(fabric.host_begin_.begin(), fabric.host_begin_.end(),
                   fabric.host_begin_.begin());
  std::vector<uint32_t> next(fabric.host_begin_.begin(), fabric.host_begin_.end() - 1);
  fabric.host_endpoints_.resize(fabric.endpoints_.size());
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
    fabric.host_endpoints_[next[fabric.host(EndpointIndex(e)).value()]++] = EndpointIndex(e);
  }
}

absl::Status FabricBuilder::AddLinks(Fabric& fabric) const {
  // Position of each adapter's first endpoint, to find an endpoint by (adapter, port).
  std::vector<uint32_t> first(fabric.adapter_count() + 1, 0);
  for (const EndpointInfo& e : fabric.endpoints_) ++first[e.adapter.value() + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  const auto vertex = [&](const PortKey& key) {
    const Node& node = nodes_.at(key.node);
    if (node.is_switch) return VertexIndex(node.index);
    uint32_t e = first[node.index];
    while (fabric.endpoints_[e].port != key.port) ++e;
    return fabric.Vertex(EndpointIndex(e));
  };
  fabric.links_.reserve(cables_.size());
  for (const Cable& cable : cables_) {
    LinkInfo info{vertex(cable.a), vertex(cable.b), cable.a.port, cable.b.port, cable.rate, 0};
    if (std::pair(info.b, info.b_port) < std::pair(info.a, info.a_port)) {
      std::swap(info.a, info.b);
      std::swap(info.a_port, info.b_port);
    }
    info.capacity_gbps = cable.capacity_gbps > 0 ? cable.capacity_gbps
                                                 : static_cast<float>(DataRateGbps(cable.rate));
    fabric.links_.push_back(info);
  }
  std::sort(fabric.links_.begin(), fabric.links_.end(), [](const LinkInfo& x, const LinkInfo& y) {
    return std::pair(x.a, x.a_port) < std::pair(y.a, y.a_port);
  });
  return absl::OkStatus();
}

// Rows of channels by vertex: to switches first, then to endpoints, each by port.
void FabricBuilder::IndexChannels(Fabric& fabric) {
  const uint32_t vertices = fabric.vertex_count();
  fabric.channel_begin_.assign(vertices + 1, 0);
  for (const LinkInfo& link : fabric.links_) {
    ++fabric.channel_begin_[link.a.value() + 1];
    ++fabric.channel_begin_[link.b.value() + 1];
  }
  std::partial_sum(fabric.channel_begin_.begin(), fabric.channel_begin_.end(),
                   fabric.channel_begin_.begin());
  std::vector<uint32_t> next(fabric.channel_begin_.begin(), fabric.channel_begin_.end() - 1);
  fabric.channels_.resize(fabric.channel_count());
  for (uint32_t c = 0; c < fabric.channel_count(); ++c) {
    const ChannelIndex channel(c);
    const VertexIndex from = fabric.channel_from(channel);
    fabric.channels_[next[from.value()]++] =
        Channel{fabric.channel_to(channel), channel, fabric.channel_from_port(channel),
                fabric.channel_from_port(Fabric::Reverse(channel))};
  }
  fabric.endpoint_part_.resize(fabric.switch_count());
  fabric.port_begin_.assign(fabric.switch_count() + 1, 0);
  fabric.uplink_.assign(fabric.endpoint_count(), kNoChannel);
  for (uint32_t v = 0; v < vertices; ++v) {
    const auto begin = fabric.channels_.begin() + fabric.channel_begin_[v];
    const auto end = fabric.channels_.begin() + fabric.channel_begin_[v + 1];
    std::sort(begin, end, [&](const Channel& x, const Channel& y) {
      return std::pair(!fabric.IsSwitch(x.to), x.port) < std::pair(!fabric.IsSwitch(y.to), y.port);
    });
    if (!fabric.IsSwitch(VertexIndex(v))) {
      if (fabric.IsSwitch(begin->to)) fabric.uplink_[v - fabric.switch_count()] = begin->index;
      continue;
    }
    const auto split =
        std::find_if(begin, end, [&](const Channel& c) { return !fabric.IsSwitch(c.to); });
    fabric.endpoint_part_[v] = static_cast<uint32_t>(split - fabric.channels_.begin());
    fabric.port_begin_[v + 1] = fabric.port_begin_[v] + fabric.switches_[v].port_count + 1;
  }
  fabric.port_channel_.assign(fabric.port_begin_.back(), kNoChannel);
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    for (const Channel& c : fabric.channels(VertexIndex(s))) {
      fabric.port_channel_[fabric.port_begin_[s] + c.port.value()] = c.index;
    }
  }
}

void FabricBuilder::FindComponents(Fabric& fabric) {
  constexpr uint32_t kUnseen = std::numeric_limits<uint32_t>::max();
  fabric.component_.assign(fabric.vertex_count(), kUnseen);
  std::vector<uint32_t> queue;
  for (uint32_t start = 0; start < fabric.vertex_count(); ++start) {
    if (fabric.component_[start] != kUnseen) continue;
    fabric.component_[start] = fabric.component_count_;
    queue.assign(1, start);
    while (!queue.empty()) {
      const VertexIndex v(queue.back());
      queue.pop_back();
      for (const Channel& c : fabric.channels(v)) {
        if (fabric.component_[c.to.value()] != kUnseen) continue;
        fabric.component_[c.to.value()] = fabric.component_count_;
        queue.push_back(c.to.value());
      }
    }
    ++fabric.component_count_;
  }
}

absl::Status FabricBuilder::IndexNames(Fabric& fabric) {
  fabric.by_port_guid_.resize(fabric.endpoint_count());
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) fabric.by_port_guid_[e] = EndpointIndex(e);
  std::sort(fabric.by_port_guid_.begin(), fabric.by_port_guid_.end(),
            [&](EndpointIndex x, EndpointIndex y) {
              return fabric.endpoint(x).port_guid < fabric.endpoint(y).port_guid;
            });
  for (size_t i = 1; i < fabric.by_port_guid_.size(); ++i) {
    const EndpointInfo& e = fabric.endpoint(fabric.by_port_guid_[i]);
    const EndpointInfo& before = fabric.endpoint(fabric.by_port_guid_[i - 1]);
    if (e.port_guid == before.port_guid) {
      return absl::InvalidArgumentError(
          absl::StrCat("port GUID ", ToString(e.port_guid), " appears twice: on ",
                       PortName(fabric.adapter(before.adapter).guid, before.port), " and on ",
                       PortName(fabric.adapter(e.adapter).guid, e.port)));
    }
  }
  for (uint32_t i = 0; i < fabric.vertex_count(); ++i) {
    const VertexIndex v(i);
    const uint16_t lid = fabric.lid(v).value();
    if (lid == 0) continue;
    if (lid >= fabric.by_lid_.size()) fabric.by_lid_.resize(lid + 1, Fabric::kNoVertex);
    if (const VertexIndex other = fabric.by_lid_[lid];
        other != Fabric::kNoVertex && fabric.component(other) == fabric.component(v)) {
      return absl::InvalidArgumentError(absl::StrCat("LID ", static_cast<int>(lid),
                                                     " appears twice in one subnet: vertices ",
                                                     other.value(), " and ", i));
    }
    fabric.by_lid_[lid] = v;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Fabric>> FabricBuilder::Build() {
  auto fabric = std::shared_ptr<Fabric>(new Fabric);
  SortNodes(*fabric);
  NameHosts(*fabric);
  AddEndpoints(*fabric);
  absl::Status status = AddLinks(*fabric);
  if (status.ok()) {
    IndexChannels(*fabric);
    FindComponents(*fabric);
    status = IndexNames(*fabric);
  }
  *this = FabricBuilder();
  if (!status.ok()) return status;
  return fabric;
}

}  // namespace coppice
