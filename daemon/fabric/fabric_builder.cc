#include "daemon/fabric/fabric_builder.h"

#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/fabric/routes.h"
#include "daemon/fabric/topology_lines.h"

namespace coppice {
namespace {

absl::Status DuplicateNode(Guid guid) {
  return absl::InvalidArgumentError(
      absl::StrCat("node ", ToString(guid), " appears twice: node GUIDs must be unique"));
}

// Most descriptions are plain ASCII: they are not copied.
void Clean(std::string& description) {
  const bool plain = absl::c_all_of(description, [](char c) { return c >= 0x20 && c < 0x7f; });
  if (!plain) description = CleanDescription(description);
}

std::string PortName(Guid node, PortNum port) {
  return absl::StrCat("port ", static_cast<int>(port.value()), " of node ", ToString(node));
}

}  // namespace

absl::Status FabricBuilder::Number(Guid guid, uint32_t index, bool is_switch, uint8_t port_count) {
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
      Number(info.guid, static_cast<uint32_t>(switches_.size()), true, info.port_count));
  Clean(info.description);
  switches_.push_back(std::move(info));
  return absl::OkStatus();
}

absl::Status FabricBuilder::AddAdapter(AdapterInfo info) {
  RETURN_IF_ERROR(
      Number(info.guid, static_cast<uint32_t>(adapters_.size()), false, info.port_count));
  Clean(info.description);
  adapters_.push_back(std::move(info));
  return absl::OkStatus();
}

absl::Status FabricBuilder::AddNode(StatedNode r) {
  if (r.is_switch()) {
    return AddSwitch(
        {r.guid, r.lid, r.port_count, r.device_id, r.vendor_id, std::move(r.description)});
  }
  return AddAdapter({r.guid, *r.adapter, r.port_count, r.device_id, r.vendor_id, HostIndex(),
                     std::move(r.description)});
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

// A fabric on its way out of its builder, step by step.
class FabricBuilder::Assembly {
 public:
  Assembly(FabricBuilder& builder, Fabric& fabric)
      : builder_(builder),
        nodes_(builder.nodes_),
        adapter_ports_(builder.adapter_ports_),
        cabled_(builder.cabled_),
        cables_(builder.cables_),
        fabric_(fabric) {}

  absl::Status Run() {
    switch_order_ = SortNodes(true);
    adapter_order_ = SortNodes(false);
    fabric_.switches_ = InOrder(std::move(builder_.switches_), switch_order_);
    fabric_.adapters_ = InOrder(std::move(builder_.adapters_), adapter_order_);
    fabric_.host_names_ = NameHosts(fabric_.adapters_);
    AddEndpoints();
    AddLinks();
    builder_ = FabricBuilder();
    IndexPorts();
    IndexChannels();
    IndexBundles();
    FindComponents();
    RETURN_IF_ERROR(IndexPortGuids());
    return CheckLids();
  }

 private:
  // The switches, or the adapters, in the order of their GUIDs.
  std::vector<uint32_t> SortNodes(bool switches) const {
    std::vector<uint32_t> order;
    order.reserve(switches ? builder_.switches_.size() : builder_.adapters_.size());
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].is_switch == switches) order.push_back(n);
    }
    const auto by_guid = [&](uint32_t x, uint32_t y) { return nodes_[x].guid < nodes_[y].guid; };
    absl::c_sort(order, by_guid);
    return order;
  }

  // The infos of `order`'s nodes in that order; node.index becomes their place in it.
  template <class Info>
  std::vector<Info> InOrder(std::vector<Info> infos, const std::vector<uint32_t>& order) {
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

  // One endpoint for every cabled adapter port, by adapter and port; and the rows of each host.
  void AddEndpoints() {
    endpoint_at_.assign(adapter_ports_.size(), kNone);
    for (const uint32_t n : adapter_order_) {
      const Node& node = nodes_[n];
      for (uint32_t i = 0; i < node.port_count; ++i) {
        if (cabled_[node.first_port + i] == kNone) continue;
        const AdapterPort& port = adapter_ports_[node.first_adapter_port + i];
        // Files without port GUIDs: the node GUID plus the port, as vendors number them.
        const Guid guid =
            port.port_guid == Guid() ? Guid(node.guid.value() + i + 1) : port.port_guid;
        endpoint_at_[node.first_adapter_port + i] = fabric_.endpoint_count();
        fabric_.endpoints_.push_back({guid, AdapterIndex(node.index),
                                      PortNum(static_cast<uint8_t>(i + 1)), port.lid, port.lmc});
      }
    }
    fabric_.host_begin_.assign(fabric_.host_count() + 1, 0);
    for (const EndpointInfo& e : fabric_.endpoints_) {
      ++fabric_.host_begin_[fabric_.adapter(e.adapter).host.value() + 1];
    }
    absl::c_partial_sum(fabric_.host_begin_, fabric_.host_begin_.begin());
    std::vector<uint32_t> next(fabric_.host_begin_.begin(), fabric_.host_begin_.end() - 1);
    fabric_.host_endpoints_.resize(fabric_.endpoints_.size());
    for (uint32_t e = 0; e < fabric_.endpoint_count(); ++e) {
      fabric_.host_endpoints_[next[fabric_.host(EndpointIndex(e)).value()]++] = EndpointIndex(e);
    }
  }

  VertexIndex VertexOf(uint32_t node, PortNum port) const {
    const Node& n = nodes_[node];
    if (n.is_switch) return VertexIndex(n.index);
    return fabric_.Vertex(EndpointIndex(endpoint_at_[n.first_adapter_port + port.value() - 1]));
  }

  // Adds the links whose lower end is on `node`. Called in the order of the vertices, so that links
  // come out sorted.
  void AddLinksOf(uint32_t node) {
    for (uint32_t i = 0; i < nodes_[node].port_count; ++i) {
      const uint32_t at = cabled_[nodes_[node].first_port + i];
      if (at == kNone) continue;
      const Cable& cable = cables_[at];
      const PortNum port(static_cast<uint8_t>(i + 1));
      const bool is_a = cable.a == node && cable.a_port == port;
      const PortNum far_port = is_a ? cable.b_port : cable.a_port;
      const VertexIndex here = VertexOf(node, port);
      const VertexIndex far = VertexOf(is_a ? cable.b : cable.a, far_port);
      if (std::pair(far, far_port) < std::pair(here, port)) continue;
      const float capacity = cable.capacity_gbps > 0 ? cable.capacity_gbps
                                                     : static_cast<float>(DataRateGbps(cable.rate));
      fabric_.links_.push_back({here, far, port, far_port, cable.rate, capacity});
      float& least = fabric_.least_capacity_gbps_;
      if (capacity > 0 && (least == 0 || capacity < least)) least = capacity;
    }
  }

  void AddLinks() {
    fabric_.links_.reserve(cables_.size());
    for (const uint32_t n : switch_order_) AddLinksOf(n);
    bool first = true;
    for (const LinkInfo& link : fabric_.links_) {
      if (!fabric_.IsSwitch(link.b)) continue;
      if (!first && fabric_.trunk_gbps_ != link.capacity_gbps) fabric_.trunk_gbps_ = std::nullopt;
      if (first) fabric_.trunk_gbps_ = link.capacity_gbps;
      first = false;
    }
    for (const uint32_t n : adapter_order_) AddLinksOf(n);
  }

  // What a fabric of nodes, endpoints and links is looked up by follows: every index from those
  // alone.

  // port_channel_ of switches and uplink_ of endpoints.
  void IndexPorts() {
    fabric_.port_begin_.assign(fabric_.switch_count() + 1, 0);
    for (uint32_t s = 0; s < fabric_.switch_count(); ++s) {
      fabric_.port_begin_[s + 1] = fabric_.port_begin_[s] + fabric_.switches_[s].port_count + 1;
    }
    fabric_.port_channel_.assign(fabric_.port_begin_.back(), kNoChannel);
    fabric_.uplink_.assign(fabric_.endpoint_count(), kNoChannel);
    const auto set = [&](VertexIndex from, PortNum port, VertexIndex to, uint32_t channel) {
      if (fabric_.IsSwitch(from)) {
        fabric_.port_channel_[fabric_.port_begin_[from.value()] + port.value()] =
            ChannelIndex(channel);
      } else if (fabric_.IsSwitch(to)) {
        fabric_.uplink_[from.value() - fabric_.switch_count()] = ChannelIndex(channel);
      }
    };
    for (uint32_t l = 0; l < fabric_.link_count(); ++l) {
      const LinkInfo& link = fabric_.links_[l];
      set(link.a, link.a_port, link.b, 2 * l);
      set(link.b, link.b_port, link.a, 2 * l + 1);
    }
  }

  // Rows of channels by vertex: to switches first, then to endpoints, each by port.
  void IndexChannels() {
    const uint32_t switches = fabric_.switch_count(), vertices = fabric_.vertex_count();
    fabric_.channel_begin_.assign(vertices + 1, 0);
    fabric_.endpoint_part_.resize(switches);
    fabric_.channels_.reserve(fabric_.channel_count());
    const auto channel = [&](ChannelIndex c) {
      const LinkInfo& link = fabric_.link(Fabric::link_of(c));
      return (c.value() & 1) == 0 ? Channel{link.b, c, link.a_port, link.b_port}
                                  : Channel{link.a, c, link.b_port, link.a_port};
    };
    std::vector<Channel> to_endpoints;
    for (uint32_t s = 0; s < switches; ++s) {
      to_endpoints.clear();
      for (uint32_t at = fabric_.port_begin_[s]; at < fabric_.port_begin_[s + 1]; ++at) {
        if (fabric_.port_channel_[at] == kNoChannel) continue;
        const Channel c = channel(fabric_.port_channel_[at]);
        (fabric_.IsSwitch(c.to) ? fabric_.channels_ : to_endpoints).push_back(c);
      }
      fabric_.endpoint_part_[s] = static_cast<uint32_t>(fabric_.channels_.size());
      fabric_.channels_.insert(fabric_.channels_.end(), to_endpoints.begin(), to_endpoints.end());
      fabric_.channel_begin_[s + 1] = static_cast<uint32_t>(fabric_.channels_.size());
    }
    // Endpoints without a switch are cabled back to back; those links come last.
    std::vector<ChannelIndex> only(fabric_.uplink_);
    for (uint32_t l = fabric_.link_count(); l > 0 && !fabric_.IsSwitch(fabric_.links_[l - 1].a);
         --l) {
      only[fabric_.links_[l - 1].a.value() - switches] = ChannelIndex(2 * l - 2);
      only[fabric_.links_[l - 1].b.value() - switches] = ChannelIndex(2 * l - 1);
    }
    for (uint32_t v = switches; v < vertices; ++v) {
      fabric_.channels_.push_back(channel(only[v - switches]));
      fabric_.channel_begin_[v + 1] = static_cast<uint32_t>(fabric_.channels_.size());
    }
  }

  // Host by host. Whose bundle each switch had last is kept, so that nothing need be cleared.
  void IndexBundles() {
    struct Last {
      uint32_t host = std::numeric_limits<uint32_t>::max();
      BundleIndex bundle;
    };
    std::vector<Last> bundle_at(fabric_.switch_count());
    fabric_.bundle_.resize(fabric_.endpoint_count());
    uint32_t bundles = 0;
    for (uint32_t h = 0; h < fabric_.host_count(); ++h) {
      for (const EndpointIndex e : fabric_.endpoints_of_host(HostIndex(h))) {
        const std::optional<SwitchIndex> at = fabric_.attached_switch(e);
        if (!at) {
          fabric_.bundle_[e.value()] = BundleIndex(bundles++);
          continue;
        }
        Last& last = bundle_at[at->value()];
        if (last.host != h) last = {h, BundleIndex(bundles++)};
        fabric_.bundle_[e.value()] = last.bundle;
      }
    }
  }

  // Numbers the components of the switches first; an endpoint is in its switch's, and two endpoints
  // back to back, whose vertices come after all switches, are one of their own.
  void FindComponents() {
    constexpr uint32_t kUnseen = std::numeric_limits<uint32_t>::max();
    fabric_.component_.assign(fabric_.vertex_count(), kUnseen);
    std::vector<uint32_t> queue;
    for (uint32_t start = 0; start < fabric_.switch_count(); ++start) {
      if (fabric_.component_[start] != kUnseen) continue;
      fabric_.component_[start] = fabric_.component_count_;
      queue.assign(1, start);
      while (!queue.empty()) {
        const SwitchIndex s(queue.back());
        queue.pop_back();
        for (const Channel& c : fabric_.switch_channels(s)) {
          if (fabric_.component_[c.to.value()] != kUnseen) continue;
          fabric_.component_[c.to.value()] = fabric_.component_count_;
          queue.push_back(c.to.value());
        }
      }
      ++fabric_.component_count_;
    }
    for (uint32_t v = fabric_.switch_count(); v < fabric_.vertex_count(); ++v) {
      const VertexIndex far = fabric_.channels(VertexIndex(v)).front().to;
      const uint32_t known = fabric_.component_[far.value()];
      fabric_.component_[v] = known != kUnseen ? known : fabric_.component_count_++;
    }
  }

  absl::Status IndexPortGuids() {
    fabric_.by_port_guid_.resize(fabric_.endpoint_count());
    for (uint32_t e = 0; e < fabric_.endpoint_count(); ++e)
      fabric_.by_port_guid_[e] = EndpointIndex(e);
    const auto by_guid = [&](EndpointIndex x, EndpointIndex y) {
      return fabric_.endpoint(x).port_guid < fabric_.endpoint(y).port_guid;
    };
    absl::c_sort(fabric_.by_port_guid_, by_guid);
    for (size_t i = 1; i < fabric_.by_port_guid_.size(); ++i) {
      const EndpointInfo& e = fabric_.endpoint(fabric_.by_port_guid_[i]);
      const EndpointInfo& before = fabric_.endpoint(fabric_.by_port_guid_[i - 1]);
      if (e.port_guid == before.port_guid) {
        return absl::InvalidArgumentError(
            absl::StrCat("port GUID ", ToString(e.port_guid), " appears twice: on ",
                         Describe(fabric_, fabric_.Vertex(fabric_.by_port_guid_[i - 1])),
                         " and on ", Describe(fabric_, fabric_.Vertex(fabric_.by_port_guid_[i])),
                         ": port GUIDs must be unique"));
      }
    }
    return absl::OkStatus();
  }

  // A LID belongs to a subnet: those of another may be the same.
  absl::Status CheckLids() const {
    absl::flat_hash_map<uint64_t, VertexIndex> owners;  // by component and LID
    owners.reserve(fabric_.vertex_count());
    for (uint32_t i = 0; i < fabric_.vertex_count(); ++i) {
      const VertexIndex v(i);
      const uint16_t lid = fabric_.lid(v).value();
      if (lid == 0) continue;
      const uint64_t key = uint64_t{fabric_.component(v)} << 16 | lid;
      const auto [it, is_new] = owners.try_emplace(key, v);
      if (is_new) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("LID ", static_cast<int>(lid), " appears twice in one subnet: on ",
                       Describe(fabric_, it->second), " and on ", Describe(fabric_, v)));
    }
    return absl::OkStatus();
  }

  FabricBuilder& builder_;
  std::vector<Node>& nodes_;
  const std::vector<AdapterPort>& adapter_ports_;
  const std::vector<uint32_t>& cabled_;
  const std::vector<Cable>& cables_;
  Fabric& fabric_;
  std::vector<uint32_t> switch_order_, adapter_order_;  // nodes, by GUID
  std::vector<uint32_t> endpoint_at_;                   // [adapter][port - 1]
};

absl::StatusOr<std::shared_ptr<const Fabric>> FabricBuilder::Build() {
  auto fabric = std::shared_ptr<Fabric>(new Fabric);
  by_guid_ = {};
  RETURN_IF_ERROR(Assembly(*this, *fabric).Run());
  return fabric;
}

}  // namespace coppice
