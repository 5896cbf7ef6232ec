// The fabric: switches, endpoints (ports of channel adapters) and the links between them, as one
// immutable value. Everything that plans reads it without locks and for as long as it likes.
//
//        endpoint 0 --- switch 0 === switch 1 --- endpoint 1        === two parallel links
//                         |             |
//        endpoint 2 ------+             +--------- endpoint 3       0 and 2: two ports of one
//        adapter, one bundle; were 0 and 1 of one adapter, they were two bundles of one host
//
// Vertices are numbered once: switches 0..S-1, then endpoints S..S+E-1. Links are undirected;
// link L has the two channels 2L (from its `a` end to its `b` end) and 2L+1 (back). Switches are
// sorted by GUID, endpoints by (adapter GUID, port), links by their ends, so that equal fabrics are
// equal values whatever order they were read in.
//
// Layout: compressed sparse rows over all vertices; about 200 bytes an endpoint. Knows no file
// format, no MADs, no routes (routes.h) and no load.
#ifndef COPPICE_DAEMON_FABRIC_FABRIC_H_
#define COPPICE_DAEMON_FABRIC_FABRIC_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/strong_id.h"

namespace coppice {

// Width and speed of a link as the port reports them, and the data rate that results.

// Speed of one lane (IBA vol. 1, 14.2.5.6 PortInfo LinkSpeedActive and its extensions).
enum class LaneSpeed : uint8_t { kUnknown, kSdr, kDdr, kQdr, kFdr10, kFdr, kEdr, kHdr, kNdr, kXdr };

struct LinkRate {
  uint8_t lanes = 0;  // 1, 2, 4, 8 or 12; 0 = unknown
  LaneSpeed speed = LaneSpeed::kUnknown;
  friend bool operator==(const LinkRate&, const LinkRate&) = default;
};

// Data rate of one direction in Gb/s, after line coding (8b/10b to QDR, 64b/66b from FDR10 on; HDR
// to XDR as marketed, PAM4 with RS-FEC). 0 if either part is unknown.
double DataRateGbps(LinkRate rate);

// "4xQDR"; "?" if unknown. ParseLinkRate is its inverse and also takes lower case.
std::string ToString(LinkRate rate);
std::optional<LinkRate> ParseLinkRate(absl::string_view text);
absl::string_view ToString(LaneSpeed speed);

using SwitchIndex = StrongId<struct SwitchIndexTag, uint32_t>;
using EndpointIndex = StrongId<struct EndpointIndexTag, uint32_t>;
using VertexIndex = StrongId<struct VertexIndexTag, uint32_t>;
using AdapterIndex = StrongId<struct AdapterIndexTag, uint32_t>;
using HostIndex = StrongId<struct HostIndexTag, uint32_t>;
using BundleIndex = StrongId<struct BundleIndexTag, uint32_t>;
using LinkIndex = StrongId<struct LinkIndexTag, uint32_t>;
using ChannelIndex = StrongId<struct ChannelIndexTag, uint32_t>;

inline constexpr ChannelIndex kNoChannel{std::numeric_limits<uint32_t>::max()};

struct SwitchInfo {
  Guid guid;
  Lid lid;
  uint8_t port_count = 0;  // external ports; port 0 is not counted
  uint16_t device_id = 0;
  uint32_t vendor_id = 0;   // 24 bits
  std::string description;  // NodeDescription
};

enum class AdapterKind : uint8_t { kChannelAdapter, kRouter };

// A node that is not a switch: a channel adapter (NIC, HCA) or a router, with one or more ports.
struct AdapterInfo {
  Guid guid;  // node GUID
  AdapterKind kind = AdapterKind::kChannelAdapter;
  uint8_t port_count = 0;
  uint16_t device_id = 0;
  uint32_t vendor_id = 0;
  HostIndex host;
  std::string description;  // NodeDescription, by custom "HOST DEVICE"
};

// One cabled port of an adapter.
struct EndpointInfo {
  Guid port_guid;
  AdapterIndex adapter;
  PortNum port;
  Lid lid;
  uint8_t lmc = 0;
};

struct LinkInfo {
  VertexIndex a, b;  // a < b, or a == b for a loopback cable of a switch
  PortNum a_port, b_port;
  LinkRate rate;
  float capacity_gbps = 0;  // one direction; 0 = unknown
};

// One direction of a link, seen from the vertex that it leaves.
struct Channel {
  VertexIndex to;
  ChannelIndex index;
  PortNum port;     // on the vertex that it leaves
  PortNum to_port;  // on the vertex that it enters
};

class Fabric final {
 public:
  Fabric& operator=(const Fabric&) = delete;

  // Number of the snapshot: rises by one with every change that the daemon publishes; 0 for files.
  uint64_t version() const { return version_; }
  // A copy that differs in its version only.
  std::shared_ptr<const Fabric> WithVersion(uint64_t version) const;

  uint32_t switch_count() const { return static_cast<uint32_t>(switches_.size()); }
  uint32_t endpoint_count() const { return static_cast<uint32_t>(endpoints_.size()); }
  uint32_t vertex_count() const { return switch_count() + endpoint_count(); }
  uint32_t adapter_count() const { return static_cast<uint32_t>(adapters_.size()); }
  uint32_t host_count() const { return static_cast<uint32_t>(host_names_.size()); }
  uint32_t link_count() const { return static_cast<uint32_t>(links_.size()); }
  uint32_t channel_count() const { return 2 * link_count(); }

  bool IsSwitch(VertexIndex v) const { return v.value() < switch_count(); }
  VertexIndex Vertex(SwitchIndex s) const { return VertexIndex(s.value()); }
  VertexIndex Vertex(EndpointIndex e) const { return VertexIndex(switch_count() + e.value()); }
  SwitchIndex AsSwitch(VertexIndex v) const { return SwitchIndex(v.value()); }
  EndpointIndex AsEndpoint(VertexIndex v) const {
    return EndpointIndex(v.value() - switch_count());
  }

  const SwitchInfo& switch_info(SwitchIndex s) const { return switches_[s.value()]; }
  const EndpointInfo& endpoint(EndpointIndex e) const { return endpoints_[e.value()]; }
  const AdapterInfo& adapter(AdapterIndex a) const { return adapters_[a.value()]; }
  const AdapterInfo& adapter(EndpointIndex e) const { return adapter(endpoint(e).adapter); }
  absl::string_view host_name(HostIndex h) const { return host_names_[h.value()]; }
  HostIndex host(EndpointIndex e) const { return adapter(e).host; }
  absl::Span<const EndpointIndex> endpoints_of_host(HostIndex h) const;

  // The ports of one host on one switch. A port without a switch is a bundle of its own. Bundles of
  // a host are numbered one after another, in the order of the hosts.
  BundleIndex bundle(EndpointIndex e) const { return bundle_[e.value()]; }
  // Whether packets between two endpoints cross no link: they are in one bundle; or they are on one
  // host whose bundles no cable joins, so that the host alone can pass packets on. Not transitive
  // where hosts are in several components; within a component it is bundle(a) == bundle(b).
  bool StayWithinHost(EndpointIndex a, EndpointIndex b) const {
    return bundle(a) == bundle(b) ||
           (component(Vertex(a)) != component(Vertex(b)) && host(a) == host(b));
  }
  const LinkInfo& link(LinkIndex l) const { return links_[l.value()]; }
  Lid lid(VertexIndex v) const;

  // Channels that leave `v`: those to switches first, then those to endpoints, each by port.
  absl::Span<const Channel> channels(VertexIndex v) const;
  absl::Span<const Channel> switch_channels(SwitchIndex s) const;    // to other switches
  absl::Span<const Channel> endpoint_channels(SwitchIndex s) const;  // to endpoints

  // The channel that leaves port `port` of switch `s`; kNoChannel if nothing is cabled there.
  ChannelIndex channel_at(SwitchIndex s, PortNum port) const {
    const uint32_t first = port_begin_[s.value()];
    return first + port.value() < port_begin_[s.value() + 1] ? port_channel_[first + port.value()]
                                                             : kNoChannel;
  }
  VertexIndex channel_from(ChannelIndex c) const;
  VertexIndex channel_to(ChannelIndex c) const { return channel_from(Reverse(c)); }
  PortNum channel_from_port(ChannelIndex c) const;
  static LinkIndex link_of(ChannelIndex c) { return LinkIndex(c.value() / 2); }
  static ChannelIndex Reverse(ChannelIndex c) { return ChannelIndex(c.value() ^ 1); }
  float capacity_gbps(ChannelIndex c) const { return link(link_of(c)).capacity_gbps; }
  // Of all links whose capacity is known; 0 if there are none.
  float least_capacity_gbps() const { return least_capacity_gbps_; }
  // Of every link between switches, 0 = unknown or no such link; nullopt where they differ.
  std::optional<float> trunk_gbps() const { return trunk_gbps_; }

  // The switch that an endpoint is cabled to, and the channel from the endpoint to it. An endpoint
  // cabled to another endpoint, back to back, has none: nullopt, kNoChannel.
  std::optional<SwitchIndex> attached_switch(EndpointIndex e) const {
    const ChannelIndex up = uplink(e);
    if (up == kNoChannel) return std::nullopt;
    return AsSwitch(link(link_of(up)).a);  // the lower vertex: switches come before endpoints
  }
  ChannelIndex uplink(EndpointIndex e) const { return uplink_[e.value()]; }

  // Connected components (subnetworks) over cables, numbered from 0 by their lowest vertex.
  uint32_t component(VertexIndex v) const { return component_[v.value()]; }
  uint32_t component_count() const { return component_count_; }

  std::optional<SwitchIndex> FindSwitch(Guid guid) const;
  // By port GUID.
  std::optional<EndpointIndex> FindEndpoint(Guid port_guid) const;
  // By adapter (node) GUID and port.
  std::optional<EndpointIndex> FindEndpoint(Guid adapter_guid, PortNum port) const;
  std::optional<HostIndex> FindHost(absl::string_view name) const;

  // Bytes held by this value, for the memory bound.
  size_t MemoryBytes() const;

 private:
  friend class FabricBuilder;
  friend struct FabricPeer;  // breaks fabrics for the tests of fabric_check.h
  Fabric() = default;
  Fabric(const Fabric&) = default;

  uint64_t version_ = 0;
  std::vector<SwitchInfo> switches_;
  std::vector<AdapterInfo> adapters_;
  std::vector<EndpointInfo> endpoints_;
  std::vector<std::string> host_names_;  // sorted
  std::vector<LinkInfo> links_;
  float least_capacity_gbps_ = 0;
  std::optional<float> trunk_gbps_ = 0;

  std::vector<uint32_t> channel_begin_;     // [vertex_count + 1] into channels_
  std::vector<uint32_t> endpoint_part_;     // [switch_count] first endpoint channel of the row
  std::vector<Channel> channels_;           // [2 * link_count]
  std::vector<uint32_t> port_begin_;        // [switch_count + 1] into port_channel_
  std::vector<ChannelIndex> port_channel_;  // by port, from port 0
  std::vector<ChannelIndex> uplink_;        // [endpoint_count]
  std::vector<uint32_t> host_begin_;        // [host_count + 1] into host_endpoints_
  std::vector<EndpointIndex> host_endpoints_;
  std::vector<BundleIndex> bundle_;  // [endpoint_count]
  std::vector<uint32_t> component_;  // [vertex_count]
  uint32_t component_count_ = 0;

  std::vector<EndpointIndex> by_port_guid_;  // sorted by port GUID
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_FABRIC_H_
