#include "daemon/fabric/fabric_builder.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/fabric/topology_text.h"

namespace coppice {
namespace {

absl::Status DuplicateNode(Guid guid) {
  return absl::InvalidArgumentError(
      absl::StrCat("node ", ToString(guid), " appears twice: node GUIDs must be unique"));
}

// Most descriptions are plain ASCII: they are not copied.
void Clean(std::string& description) {
  const bool plain = std::all_of(description.begin(), description.end(),
                                 [](char c) { return c >= 0x20 && c < 0x7f; });
  if (!plain) description = CleanDescription(description);
}

std::string PortName(Guid node, PortNum port) {
  return absl::StrCat("port ", static_cast<int>(port.value()), " of node ", ToString(node));
}

}  // namespace

absl::Status FabricBuilder::AddNode(Guid guid, uint32_t index, bool is_switch, uint8_t port_count) {
  const auto node = static_cast<uint32_t>(nodes_.size());
  if (!by_guid_.try_emplace(guid, node).second) return DuplicateNode(guid);
  nodes_.push_back({guid, index, static_cast<uint32_t>(cabled_.size()),
                    static_cast<uint32_t>(adapter_ports_.size()), port_count, is_switch});
  cabled_.resize(cabled_.size() + port_count, kNone);
  if (!is_switch) adapter_ports_.resize(adapter_ports_.size() + port_count);
  return absl::OkStatus();
}

absl::Status FabricBuilder::AddSwitch(SwitchInfo info) {
  RETURN_IF_ERROR(
      AddNode(info.guid, static_cast<uint32_t>(switches_.size()), true, info.port_count));
  Clean(info.description);
  switches_.push_back(std::move(info));
  return absl::OkStatus();
}

absl::Status FabricBuilder::AddAdapter(AdapterInfo info) {
  RETURN_IF_ERROR(
      AddNode(info.guid, static_cast<uint32_t>(adapters_.size()), false, info.port_count));
  Clean(info.description);
  adapters_.push_back(std::move(info));
  return absl::OkStatus();
}

std::optional<uint32_t> FabricBuilder::FindNode(Guid guid) const {
  const auto it = by_guid_.find(guid);
  if (it == by_guid_.end()) return std::nullopt;
  return it->second;
}

absl::StatusOr<uint32_t> FabricBuilder::NodeAt(Guid guid) const {
  if (const std::optional<uint32_t> node = FindNode(guid)) return *node;
  return absl::InvalidArgumentError(
      absl::StrCat("node ", ToString(guid), " is named by a cable but is not in the fabric"));
}

absl::Status FabricBuilder::CheckPort(uint32_t node, PortNum port) const {
  if (port.value() > 0 && port.value() <= nodes_[node].port_count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(PortName(nodes_[node].guid, port),
                                                 " does not exist: the node has ports 1 to ",
                                                 static_cast<int>(nodes_[node].port_count)));
}

absl::Status FabricBuilder::SetAdapterPort(Guid adapter, PortNum port, Guid port_guid, Lid lid,
                                           uint8_t lmc) {
  ASSIGN_OR_RETURN(const uint32_t node, NodeAt(adapter));
  return SetAdapterPort(node, port, port_guid, lid, lmc);
}

absl::Status FabricBuilder::SetAdapterPort(uint32_t adapter, PortNum port, Guid port_guid, Lid lid,
                                           uint8_t lmc) {
  RETURN_IF_ERROR(CheckPort(adapter, port));
  const Node& node = nodes_[adapter];
  if (node.is_switch) {
    return absl::InvalidArgumentError(
        absl::StrCat("node ", ToString(node.guid), " is a switch: its ports have no GUIDs"));
  }
  if (lmc > 7) {
    return absl::InvalidArgumentError(absl::StrCat(PortName(node.guid, port), ": LMC ",
                                                   static_cast<int>(lmc), " is not in 0..7"));
  }
  adapter_ports_[node.first_adapter_port + port.value() - 1] = AdapterPort{port_guid, lid, lmc};
  return absl::OkStatus();
}

absl::Status FabricBuilder::AddLink(Guid a, PortNum a_port, Guid b, PortNum b_port, LinkRate rate,
                                    float capacity_gbps) {
  ASSIGN_OR_RETURN(const uint32_t node_a, NodeAt(a));
  ASSIGN_OR_RETURN(const uint32_t node_b, NodeAt(b));
  return AddLink(node_a, a_port, node_b, b_port, rate, capacity_gbps);
}

absl::Status FabricBuilder::CabledTwice(const Cable& known, uint32_t node, PortNum port,
                                        const Cable& now) const {
  const auto other_end = [&](const Cable& cable) {
    const bool is_a = cable.a == node && cable.a_port == port;
    return is_a ? PortName(nodes_[cable.b].guid, cable.b_port)
                : PortName(nodes_[cable.a].guid, cable.a_port);
  };
  return absl::InvalidArgumentError(absl::StrCat(PortName(nodes_[node].guid, port),
                                                 " is cabled twice: to ", other_end(known),
                                                 " and to ", other_end(now)));
}

absl::Status FabricBuilder::AddLink(uint32_t a, PortNum a_port, uint32_t b, PortNum b_port,
                                    LinkRate rate, float capacity_gbps) {
  RETURN_IF_ERROR(CheckPort(a, a_port));
  RETURN_IF_ERROR(CheckPort(b, b_port));
  if (std::pair(b, b_port) < std::pair(a, a_port)) {
    std::swap(a, b);
    std::swap(a_port, b_port);
  }
  if (a == b && a_port == b_port) {
    return absl::InvalidArgumentError(
        absl::StrCat(PortName(nodes_[a].guid, a_port), " is cabled to itself: remove the line"));
  }
  const Cable cable{a, b, a_port, b_port, rate, capacity_gbps};
  uint32_t& at_a = CableAt(a, a_port);
  uint32_t& at_b = CableAt(b, b_port);
  if (at_a == kNone && at_b == kNone) {
    at_a = at_b = static_cast<uint32_t>(cables_.size());
    cables_.push_back(cable);
    return absl::OkStatus();
  }
  if (at_a != at_b) {
    return at_a != kNone ? CabledTwice(cables_[at_a], a, a_port, cable)
                         : CabledTwice(cables_[at_b], b, b_port, cable);
  }
  Cable& known = cables_[at_a];
  if (known.rate == LinkRate{}) known.rate = rate;
  if (known.capacity_gbps == 0) known.capacity_gbps = capacity_gbps;
  return absl::OkStatus();
}

// The switches, or the adapters, in the order of their GUIDs. Texts mostly have them so already.
std::vector<uint32_t> FabricBuilder::SortNodes(bool switches) const {
  std::vector<uint32_t> order;
  order.reserve(switches ? switches_.size() : adapters_.size());
  for (uint32_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].is_switch == switches) order.push_back(n);
  }
  const auto by_guid = [&](uint32_t x, uint32_t y) { return nodes_[x].guid < nodes_[y].guid; };
  if (!std::is_sorted(order.begin(), order.end(), by_guid)) {
    std::sort(order.begin(), order.end(), by_guid);
  }
  return order;
}

// The infos of `order`'s nodes in that order; node.index becomes their place in it.
template <class Info>
std::vector<Info> FabricBuilder::InOrder(std::vector<Info> infos,
                                         const std::vector<uint32_t>& order) {
  bool sorted = true;
  for (uint32_t i = 0; i < order.size(); ++i) sorted = sorted && nodes_[order[i]].index == i;
  if (sorted) {
    infos.shrink_to_fit();
    return infos;
  }
  std::vector<Info> ordered;
  ordered.reserve(infos.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    Node& node = nodes_[order[i]];
    ordered.push_back(std::move(infos[node.index]));
    node.index = i;
  }
  return ordered;
}

void FabricBuilder::MoveNodes(Fabric& fabric) {
  switch_order_ = SortNodes(true);
  adapter_order_ = SortNodes(false);
  fabric.switches_ = InOrder(std::move(switches_), switch_order_);
  fabric.adapters_ = InOrder(std::move(adapters_), adapter_order_);
}

// One endpoint for every cabled adapter port, by adapter and port; and the rows of each host.
void FabricBuilder::AddEndpoints(Fabric& fabric) {
  endpoint_at_.assign(adapter_ports_.size(), kNone);
  for (const uint32_t n : adapter_order_) {
    const Node& node = nodes_[n];
    for (uint32_t i = 0; i < node.port_count; ++i) {
      if (cabled_[node.first_port + i] == kNone) continue;
      const AdapterPort& port = adapter_ports_[node.first_adapter_port + i];
      // Files without port GUIDs: the node GUID plus the port, as vendors number them.
      const Guid guid = port.port_guid == Guid() ? Guid(node.guid.value() + i + 1) : port.port_guid;
      endpoint_at_[node.first_adapter_port + i] = fabric.endpoint_count();
      fabric.endpoints_.push_back({guid, AdapterIndex(node.index),
                                   PortNum(static_cast<uint8_t>(i + 1)), port.lid, port.lmc});
    }
  }
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

VertexIndex FabricBuilder::VertexOf(const Fabric& fabric, uint32_t node, PortNum port) const {
  const Node& n = nodes_[node];
  if (n.is_switch) return VertexIndex(n.index);
  return fabric.Vertex(EndpointIndex(endpoint_at_[n.first_adapter_port + port.value() - 1]));
}

// Adds the links whose lower end is on `node`. Called in the order of the vertices, so that links
// come out sorted.
void FabricBuilder::AddLinksOf(uint32_t node, Fabric& fabric) {
  for (uint32_t i = 0; i < nodes_[node].port_count; ++i) {
    const uint32_t at = cabled_[nodes_[node].first_port + i];
    if (at == kNone) continue;
    const Cable& cable = cables_[at];
    const PortNum port(static_cast<uint8_t>(i + 1));
    const bool is_a = cable.a == node && cable.a_port == port;
    const PortNum far_port = is_a ? cable.b_port : cable.a_port;
    const VertexIndex here = VertexOf(fabric, node, port);
    const VertexIndex far = VertexOf(fabric, is_a ? cable.b : cable.a, far_port);
    if (std::pair(far, far_port) < std::pair(here, port)) continue;
    const float capacity = cable.capacity_gbps > 0 ? cable.capacity_gbps
                                                   : static_cast<float>(DataRateGbps(cable.rate));
    fabric.links_.push_back({here, far, port, far_port, cable.rate, capacity});
    float& least = fabric.least_capacity_gbps_;
    if (capacity > 0 && (least == 0 || capacity < least)) least = capacity;
  }
}

void FabricBuilder::AddLinks(Fabric& fabric) {
  fabric.links_.reserve(cables_.size());
  for (const uint32_t n : switch_order_) AddLinksOf(n, fabric);
  for (const uint32_t n : adapter_order_) AddLinksOf(n, fabric);
}

absl::StatusOr<std::shared_ptr<const Fabric>> FabricBuilder::Build() {
  auto fabric = std::shared_ptr<Fabric>(new Fabric);
  by_guid_ = {};
  MoveNodes(*fabric);
  fabric->host_names_ = NameHosts(fabric->adapters_);
  AddEndpoints(*fabric);
  AddLinks(*fabric);
  *this = FabricBuilder();
  RETURN_IF_ERROR(IndexFabric(*fabric));
  return fabric;
}

}  // namespace coppice
