// The last step of FabricBuilder: what a fabric of nodes, endpoints and links is looked up by.
// Every index follows from those alone.
#include <algorithm>
#include <limits>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/fabric_builder.h"
#include "daemon/fabric/routes.h"

namespace coppice {

// port_channel_ of switches and uplink_ of endpoints.
void FabricBuilder::IndexPorts(Fabric& fabric) {
  fabric.port_begin_.assign(fabric.switch_count() + 1, 0);
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    fabric.port_begin_[s + 1] = fabric.port_begin_[s] + fabric.switches_[s].port_count + 1;
  }
  fabric.port_channel_.assign(fabric.port_begin_.back(), kNoChannel);
  fabric.uplink_.assign(fabric.endpoint_count(), kNoChannel);
  const auto set = [&](VertexIndex from, PortNum port, VertexIndex to, uint32_t channel) {
    if (fabric.IsSwitch(from)) {
      fabric.port_channel_[fabric.port_begin_[from.value()] + port.value()] = ChannelIndex(channel);
    } else if (fabric.IsSwitch(to)) {
      fabric.uplink_[from.value() - fabric.switch_count()] = ChannelIndex(channel);
    }
  };
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    const LinkInfo& link = fabric.links_[l];
    set(link.a, link.a_port, link.b, 2 * l);
    set(link.b, link.b_port, link.a, 2 * l + 1);
  }
}

// Rows of channels by vertex: to switches first, then to endpoints, each by port.
void FabricBuilder::IndexChannels(Fabric& fabric) {
  const uint32_t switches = fabric.switch_count(), vertices = fabric.vertex_count();
  fabric.channel_begin_.assign(vertices + 1, 0);
  fabric.endpoint_part_.resize(switches);
  fabric.channels_.reserve(fabric.channel_count());
  const auto channel = [&](ChannelIndex c) {
    const LinkInfo& link = fabric.link(Fabric::link_of(c));
    return (c.value() & 1) == 0 ? Channel{link.b, c, link.a_port, link.b_port}
                                : Channel{link.a, c, link.b_port, link.a_port};
  };
  std::vector<Channel> to_endpoints;
  for (uint32_t s = 0; s < switches; ++s) {
    to_endpoints.clear();
    for (uint32_t at = fabric.port_begin_[s]; at < fabric.port_begin_[s + 1]; ++at) {
      if (fabric.port_channel_[at] == kNoChannel) continue;
      const Channel c = channel(fabric.port_channel_[at]);
      (fabric.IsSwitch(c.to) ? fabric.channels_ : to_endpoints).push_back(c);
    }
    fabric.endpoint_part_[s] = static_cast<uint32_t>(fabric.channels_.size());
    fabric.channels_.insert(fabric.channels_.end(), to_endpoints.begin(), to_endpoints.end());
    fabric.channel_begin_[s + 1] = static_cast<uint32_t>(fabric.channels_.size());
  }
  // Endpoints without a switch are cabled back to back; those links come last.
  std::vector<ChannelIndex> only(fabric.uplink_);
  for (uint32_t l = fabric.link_count(); l > 0 && !fabric.IsSwitch(fabric.links_[l - 1].a); --l) {
    only[fabric.links_[l - 1].a.value() - switches] = ChannelIndex(2 * l - 2);
    only[fabric.links_[l - 1].b.value() - switches] = ChannelIndex(2 * l - 1);
  }
  for (uint32_t v = switches; v < vertices; ++v) {
    fabric.channels_.push_back(channel(only[v - switches]));
    fabric.channel_begin_[v + 1] = static_cast<uint32_t>(fabric.channels_.size());
  }
}

// Host by host. Whose bundle each switch had last is kept, so that nothing need be cleared.
void FabricBuilder::IndexBundles(Fabric& fabric) {
  struct Last {
    uint32_t host = std::numeric_limits<uint32_t>::max();
    BundleIndex bundle;
  };
  std::vector<Last> bundle_at(fabric.switch_count());
  fabric.bundle_.resize(fabric.endpoint_count());
  uint32_t bundles = 0;
  for (uint32_t h = 0; h < fabric.host_count(); ++h) {
    for (const EndpointIndex e : fabric.endpoints_of_host(HostIndex(h))) {
      const std::optional<SwitchIndex> at = fabric.attached_switch(e);
      if (!at) {
        fabric.bundle_[e.value()] = BundleIndex(bundles++);
        continue;
      }
      Last& last = bundle_at[at->value()];
      if (last.host != h) last = {h, BundleIndex(bundles++)};
      fabric.bundle_[e.value()] = last.bundle;
    }
  }
}

// Numbers the components of the switches first; an endpoint is in its switch's, and two endpoints
// back to back, whose vertices come after all switches, are one of their own.
void FabricBuilder::FindComponents(Fabric& fabric) {
  constexpr uint32_t kUnseen = std::numeric_limits<uint32_t>::max();
  fabric.component_.assign(fabric.vertex_count(), kUnseen);
  std::vector<uint32_t> queue;
  for (uint32_t start = 0; start < fabric.switch_count(); ++start) {
    if (fabric.component_[start] != kUnseen) continue;
    fabric.component_[start] = fabric.component_count_;
    queue.assign(1, start);
    while (!queue.empty()) {
      const SwitchIndex s(queue.back());
      queue.pop_back();
      for (const Channel& c : fabric.switch_channels(s)) {
        if (fabric.component_[c.to.value()] != kUnseen) continue;
        fabric.component_[c.to.value()] = fabric.component_count_;
        queue.push_back(c.to.value());
      }
    }
    ++fabric.component_count_;
  }
  for (uint32_t v = fabric.switch_count(); v < fabric.vertex_count(); ++v) {
    const VertexIndex far = fabric.channels(VertexIndex(v)).front().to;
    const uint32_t known = fabric.component_[far.value()];
    fabric.component_[v] = known != kUnseen ? known : fabric.component_count_++;
  }
}

absl::Status FabricBuilder::IndexPortGuids(Fabric& fabric) {
  fabric.by_port_guid_.resize(fabric.endpoint_count());
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) fabric.by_port_guid_[e] = EndpointIndex(e);
  const auto by_guid = [&](EndpointIndex x, EndpointIndex y) {
    return fabric.endpoint(x).port_guid < fabric.endpoint(y).port_guid;
  };
  if (!std::is_sorted(fabric.by_port_guid_.begin(), fabric.by_port_guid_.end(), by_guid)) {
    std::sort(fabric.by_port_guid_.begin(), fabric.by_port_guid_.end(), by_guid);
  }
  for (size_t i = 1; i < fabric.by_port_guid_.size(); ++i) {
    const EndpointInfo& e = fabric.endpoint(fabric.by_port_guid_[i]);
    const EndpointInfo& before = fabric.endpoint(fabric.by_port_guid_[i - 1]);
    if (e.port_guid == before.port_guid) {
      return absl::InvalidArgumentError(absl::StrCat(
          "port GUID ", ToString(e.port_guid), " appears twice: on ",
          Describe(fabric, fabric.Vertex(fabric.by_port_guid_[i - 1])), " and on ",
          Describe(fabric, fabric.Vertex(fabric.by_port_guid_[i])), ": port GUIDs must be unique"));
    }
  }
  return absl::OkStatus();
}

// A LID belongs to a subnet: of several that use the same one, the lowest vertex is found by it.
absl::Status FabricBuilder::IndexLids(Fabric& fabric) {
  absl::flat_hash_map<uint64_t, VertexIndex> in_other_subnets;  // by component and LID
  for (uint32_t i = 0; i < fabric.vertex_count(); ++i) {
    const VertexIndex v(i);
    const uint16_t lid = fabric.lid(v).value();
    if (lid == 0) continue;
    if (lid >= fabric.by_lid_.size()) fabric.by_lid_.resize(lid + 1, Fabric::kNoVertex);
    VertexIndex other = fabric.by_lid_[lid];
    if (other == Fabric::kNoVertex) {
      fabric.by_lid_[lid] = v;
      continue;
    }
    if (fabric.component(other) != fabric.component(v)) {
      const uint64_t key = uint64_t{fabric.component(v)} << 16 | lid;
      const auto [it, is_new] = in_other_subnets.try_emplace(key, v);
      if (is_new) continue;
      other = it->second;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("LID ", static_cast<int>(lid), " appears twice in one subnet: on ",
                     Describe(fabric, other), " and on ", Describe(fabric, v)));
  }
  return absl::OkStatus();
}

absl::Status FabricBuilder::IndexFabric(Fabric& fabric) {
  IndexPorts(fabric);
  IndexChannels(fabric);
  IndexBundles(fabric);
  FindComponents(fabric);
  RETURN_IF_ERROR(IndexPortGuids(fabric));
  return IndexLids(fabric);
}

}  // namespace coppice
