#include "daemon/fabric/fabric.h"

#include <algorithm>
#include <array>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

struct SpeedName {
  LaneSpeed speed;
  absl::string_view name;
  double lane_gbps;  // data rate of one lane
};

// IBA vol. 2, 5.2 (SDR-QDR: 2.5, 5, 10 GBd with 8b/10b); vol. 1 release 1.3 and later for the rest.
constexpr std::array<SpeedName, 9> kSpeeds = {{
    {LaneSpeed::kSdr, "SDR", 2},
    {LaneSpeed::kDdr, "DDR", 4},
    {LaneSpeed::kQdr, "QDR", 8},
    {LaneSpeed::kFdr10, "FDR10", 10},
    {LaneSpeed::kFdr, "FDR", 14.0625 * 64 / 66},
    {LaneSpeed::kEdr, "EDR", 25},
    {LaneSpeed::kHdr, "HDR", 50},
    {LaneSpeed::kNdr, "NDR", 100},
    {LaneSpeed::kXdr, "XDR", 200},
}};

template <class T>
size_t HeapBytes(const std::vector<T>& v) {
  return v.capacity() * sizeof(T);
}

size_t HeapBytes(const std::string& s) {
  static const size_t inline_capacity = std::string().capacity();
  return s.capacity() > inline_capacity ? s.capacity() + 1 : 0;
}

}  // namespace

double DataRateGbps(LinkRate rate) {
  for (const SpeedName& entry : kSpeeds) {
    if (entry.speed == rate.speed) return entry.lane_gbps * rate.lanes;
  }
  return 0;
}

absl::string_view ToString(LaneSpeed speed) {
  for (const SpeedName& entry : kSpeeds) {
    if (entry.speed == speed) return entry.name;
  }
  return "?";
}

std::string ToString(LinkRate rate) {
  if (rate.lanes == 0 || rate.speed == LaneSpeed::kUnknown) return "?";
  return absl::StrCat(static_cast<int>(rate.lanes), "x", ToString(rate.speed));
}

std::optional<LinkRate> ParseLinkRate(absl::string_view text) {
  const size_t x = text.find_first_of("xX");
  int lanes = 0;
  if (x == absl::string_view::npos || !absl::SimpleAtoi(text.substr(0, x), &lanes)) return {};
  if (lanes != 1 && lanes != 2 && lanes != 4 && lanes != 8 && lanes != 12) return {};
  for (const SpeedName& entry : kSpeeds) {
    if (absl::EqualsIgnoreCase(entry.name, text.substr(x + 1))) {
      return LinkRate{static_cast<uint8_t>(lanes), entry.speed};
    }
  }
  return {};
}

std::shared_ptr<const Fabric> Fabric::WithVersion(uint64_t version) const {
  auto copy = std::shared_ptr<Fabric>(new Fabric(*this));
  copy->version_ = version;
  return copy;
}

absl::Span<const EndpointIndex> Fabric::endpoints_of_host(HostIndex h) const {
  const uint32_t begin = host_begin_[h.value()];
  return absl::MakeConstSpan(host_endpoints_).subspan(begin, host_begin_[h.value() + 1] - begin);
}

Lid Fabric::lid(VertexIndex v) const {
  return IsSwitch(v) ? switch_info(AsSwitch(v)).lid : endpoint(AsEndpoint(v)).lid;
}

absl::Span<const Channel> Fabric::channels(VertexIndex v) const {
  const uint32_t begin = channel_begin_[v.value()];
  return absl::MakeConstSpan(channels_).subspan(begin, channel_begin_[v.value() + 1] - begin);
}

absl::Span<const Channel> Fabric::switch_channels(SwitchIndex s) const {
  const uint32_t begin = channel_begin_[s.value()];
  return absl::MakeConstSpan(channels_).subspan(begin, endpoint_part_[s.value()] - begin);
}

absl::Span<const Channel> Fabric::endpoint_channels(SwitchIndex s) const {
  const uint32_t begin = endpoint_part_[s.value()];
  return absl::MakeConstSpan(channels_).subspan(begin, channel_begin_[s.value() + 1] - begin);
}

VertexIndex Fabric::channel_from(ChannelIndex c) const {
  const LinkInfo& info = link(link_of(c));
  return c.value() % 2 == 0 ? info.a : info.b;
}

PortNum Fabric::channel_from_port(ChannelIndex c) const {
  const LinkInfo& info = link(link_of(c));
  return c.value() % 2 == 0 ? info.a_port : info.b_port;
}

std::optional<SwitchIndex> Fabric::FindSwitch(Guid guid) const {
  const auto it =
      absl::c_lower_bound(switches_, guid, [](const SwitchInfo& s, Guid g) { return s.guid < g; });
  if (it == switches_.end() || it->guid != guid) return std::nullopt;
  return SwitchIndex(static_cast<uint32_t>(it - switches_.begin()));
}

std::optional<EndpointIndex> Fabric::FindEndpoint(Guid port_guid) const {
  const auto it = absl::c_lower_bound(by_port_guid_, port_guid, [this](EndpointIndex e, Guid g) {
    return endpoint(e).port_guid < g;
  });
  if (it == by_port_guid_.end() || endpoint(*it).port_guid != port_guid) return std::nullopt;
  return *it;
}

std::optional<EndpointIndex> Fabric::FindEndpoint(Guid adapter_guid, PortNum port) const {
  const auto key = [this](const EndpointInfo& e) {
    return std::pair(adapter(e.adapter).guid, e.port);
  };
  const std::pair wanted(adapter_guid, port);
  const auto it = absl::c_lower_bound(endpoints_, wanted,
                                      [&](const EndpointInfo& e, auto w) { return key(e) < w; });
  if (it == endpoints_.end() || key(*it) != wanted) return std::nullopt;
  return EndpointIndex(static_cast<uint32_t>(it - endpoints_.begin()));
}

std::optional<HostIndex> Fabric::FindHost(absl::string_view name) const {
  const auto it = absl::c_lower_bound(host_names_, name);
  if (it == host_names_.end() || *it != name) return std::nullopt;
  return HostIndex(static_cast<uint32_t>(it - host_names_.begin()));
}

size_t Fabric::MemoryBytes() const {
  size_t bytes = sizeof(*this) + HeapBytes(switches_) + HeapBytes(adapters_) +
                 HeapBytes(endpoints_) + HeapBytes(host_names_) + HeapBytes(links_) +
                 HeapBytes(channel_begin_) + HeapBytes(endpoint_part_) + HeapBytes(channels_) +
                 HeapBytes(port_begin_) + HeapBytes(port_channel_) + HeapBytes(uplink_) +
                 HeapBytes(host_begin_) + HeapBytes(host_endpoints_) + HeapBytes(bundle_) +
                 HeapBytes(component_) + HeapBytes(by_port_guid_);
  for (const SwitchInfo& s : switches_) bytes += HeapBytes(s.description);
  for (const AdapterInfo& a : adapters_) bytes += HeapBytes(a.description);
  for (const std::string& name : host_names_) bytes += HeapBytes(name);
  return bytes;
}

}  // namespace coppice
