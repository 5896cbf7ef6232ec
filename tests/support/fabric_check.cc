#include "tests/support/fabric_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/fabric/routes.h"

namespace coppice {
namespace {

absl::Status Broken(const Fabric& fabric, VertexIndex v, absl::string_view what) {
  return absl::InternalError(absl::StrCat(Describe(fabric, v), ": ", what));
}

absl::Status BrokenLink(uint32_t l, absl::string_view what) {
  return absl::InternalError(absl::StrCat("link ", l, ": ", what));
}

absl::Status CheckRow(const Fabric& fabric, VertexIndex v, std::vector<uint8_t>& times_seen) {
  std::vector<bool> used(256, false);
  std::tuple<bool, PortNum> before{false, PortNum(0)};
  for (const Channel& channel : fabric.channels(v)) {
    if (Fabric::link_of(channel.index).value() >= fabric.link_count()) {
      return Broken(fabric, v, "a channel of no link");
    }
    ++times_seen[channel.index.value()];
    if (fabric.channel_from(channel.index) != v || fabric.channel_to(channel.index) != channel.to ||
        fabric.channel_from_port(channel.index) != channel.port ||
        fabric.channel_from_port(Fabric::Reverse(channel.index)) != channel.to_port) {
      return Broken(fabric, v, absl::StrCat("channel ", channel.index.value(), " is not its link"));
    }
    if (used[channel.port.value()]) return Broken(fabric, v, "a port with two cables");
    used[channel.port.value()] = true;
    const std::tuple<bool, PortNum> key{!fabric.IsSwitch(channel.to), channel.port};
    if (!(before < key)) return Broken(fabric, v, "channels out of order");
    before = key;
  }
  return absl::OkStatus();
}

absl::Status CheckSwitch(const Fabric& fabric, SwitchIndex s) {
  const VertexIndex v = fabric.Vertex(s);
  const size_t rows = fabric.switch_channels(s).size() + fabric.endpoint_channels(s).size();
  if (rows != fabric.channels(v).size()) return Broken(fabric, v, "its two rows are not its row");
  size_t cabled = 0;
  for (uint32_t p = 0; p < 256; ++p) {
    const ChannelIndex c = fabric.channel_at(s, PortNum(static_cast<uint8_t>(p)));
    if (c == kNoChannel) continue;
    ++cabled;
    if (p == 0 || p > fabric.switch_info(s).port_count || fabric.channel_from(c) != v ||
        fabric.channel_from_port(c).value() != p) {
      return Broken(fabric, v, absl::StrCat("port ", p, " has another port's channel"));
    }
  }
  if (cabled != rows) return Broken(fabric, v, "channel_at() misses a cable");
  if (fabric.FindSwitch(fabric.switch_info(s).guid) != s) {
    return Broken(fabric, v, "not found by its GUID");
  }
  if (s.value() > 0 &&
      fabric.switch_info(SwitchIndex(s.value() - 1)).guid >= fabric.switch_info(s).guid) {
    return Broken(fabric, v, "switches are not sorted by GUID");
  }
  return absl::OkStatus();
}

absl::Status CheckEndpoint(const Fabric& fabric, EndpointIndex e) {
  const VertexIndex v = fabric.Vertex(e);
  const EndpointInfo& info = fabric.endpoint(e);
  const absl::Span<const Channel> row = fabric.channels(v);
  if (row.size() != 1) return Broken(fabric, v, "an endpoint has one cable");
  const bool on_switch = fabric.IsSwitch(row[0].to);
  if (fabric.uplink(e) != (on_switch ? row[0].index : kNoChannel) ||
      fabric.attached_switch(e).has_value() != on_switch ||
      (on_switch && fabric.Vertex(*fabric.attached_switch(e)) != row[0].to)) {
    return Broken(fabric, v, "its uplink is not its cable");
  }
  if (row[0].port != info.port) return Broken(fabric, v, "its cable is on another port");
  if (info.port_guid.value() != 0 && fabric.FindEndpoint(info.port_guid) != e) {
    return Broken(fabric, v, "not found by its port GUID");
  }
  if (fabric.FindEndpoint(fabric.adapter(e).guid, info.port) != e) {
    return Broken(fabric, v, "not found by adapter and port");
  }
  if (e.value() == 0) return absl::OkStatus();
  const EndpointIndex previous(e.value() - 1);
  if (std::pair(fabric.adapter(previous).guid, fabric.endpoint(previous).port) >=
      std::pair(fabric.adapter(e).guid, info.port)) {
    return Broken(fabric, v, "endpoints are not sorted");
  }
  return absl::OkStatus();
}

absl::Status CheckLinks(const Fabric& fabric, const std::vector<uint8_t>& times_seen) {
  for (uint32_t l = 0; l < fabric.link_count(); ++l) {
    const LinkInfo& link = fabric.link(LinkIndex(l));
    if (link.b < link.a) return BrokenLink(l, "its ends are out of order");
    if (link.a == link.b && !fabric.IsSwitch(link.a)) return BrokenLink(l, "loops on an endpoint");
    if (times_seen[2 * l] != 1 || times_seen[2 * l + 1] != 1) {
      return BrokenLink(l, "each of its channels must be in one row, once");
    }
    if (l == 0) continue;
    const LinkInfo& before = fabric.link(LinkIndex(l - 1));
    if (std::tie(before.a, before.a_port) >= std::tie(link.a, link.a_port)) {
      return BrokenLink(l, "links are not sorted by their ends");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckComponents(const Fabric& fabric) {
  constexpr uint32_t kNone = 0xffffffff;
  std::vector<uint32_t> component(fabric.vertex_count(), kNone);
  uint32_t count = 0;
  for (uint32_t start = 0; start < fabric.vertex_count(); ++start) {
    if (component[start] != kNone) continue;
    component[start] = count;
    std::vector<VertexIndex> stack{VertexIndex(start)};
    while (!stack.empty()) {
      const VertexIndex v = stack.back();
      stack.pop_back();
      for (const Channel& channel : fabric.channels(v)) {
        if (component[channel.to.value()] != kNone) continue;
        component[channel.to.value()] = count;
        stack.push_back(channel.to);
      }
    }
    ++count;
  }
  if (count != fabric.component_count()) {
    return absl::InternalError(
        absl::StrCat("fabric: ", fabric.component_count(), " components, but cables make ", count));
  }
  for (uint32_t v = 0; v < fabric.vertex_count(); ++v) {
    if (fabric.component(VertexIndex(v)) != component[v]) {
      return Broken(fabric, VertexIndex(v), "in another component than its cables say");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckHosts(const Fabric& fabric) {
  std::vector<bool> seen(fabric.endpoint_count(), false);
  for (uint32_t h = 0; h < fabric.host_count(); ++h) {
    if (fabric.FindHost(fabric.host_name(HostIndex(h))) != HostIndex(h)) {
      return absl::InternalError(
          absl::StrCat("host ", fabric.host_name(HostIndex(h)), ": not found by its name"));
    }
    for (const EndpointIndex e : fabric.endpoints_of_host(HostIndex(h))) {
      if (fabric.host(e) != HostIndex(h) || seen[e.value()]) {
        return Broken(fabric, fabric.Vertex(e), "listed under another host or twice");
      }
      seen[e.value()] = true;
    }
  }
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing == seen.end()) return absl::OkStatus();
  const EndpointIndex e(static_cast<uint32_t>(missing - seen.begin()));
  return Broken(fabric, fabric.Vertex(e), "listed under no host");
}

// Of two endpoints of a host those on one switch are in one bundle, all others on different ones.
absl::Status CheckBundles(const Fabric& fabric) {
  std::map<BundleIndex, EndpointIndex> first_of_bundle;
  for (uint32_t h = 0; h < fabric.host_count(); ++h) {
    std::map<SwitchIndex, BundleIndex> bundle_at;
    for (const EndpointIndex e : fabric.endpoints_of_host(HostIndex(h))) {
      const BundleIndex bundle = fabric.bundle(e);
      const std::optional<SwitchIndex> at = fabric.attached_switch(e);
      const auto [first, is_new] = first_of_bundle.try_emplace(bundle, e);
      const EndpointIndex other = first->second;
      if (!is_new &&
          (!at || fabric.host(other) != HostIndex(h) || fabric.attached_switch(other) != at)) {
        return Broken(fabric, fabric.Vertex(e), "in a bundle of another host or switch");
      }
      if (at && bundle_at.try_emplace(*at, bundle).first->second != bundle) {
        return Broken(fabric, fabric.Vertex(e), "not in the bundle of its host and switch");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLids(const Fabric& fabric) {
  std::set<std::pair<uint32_t, uint16_t>> owned;  // component and LID
  for (uint32_t i = 0; i < fabric.vertex_count(); ++i) {
    const VertexIndex v(i);
    const uint16_t lid = fabric.lid(v).value();
    if (lid != 0 && !owned.emplace(fabric.component(v), lid).second) {
      return Broken(fabric, v, "has the LID of another of its subnet");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFabric(const Fabric& fabric) {
  std::vector<uint8_t> times_seen(fabric.channel_count(), 0);
  for (uint32_t v = 0; v < fabric.vertex_count(); ++v) {
    RETURN_IF_ERROR(CheckRow(fabric, VertexIndex(v), times_seen));
  }
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    RETURN_IF_ERROR(CheckSwitch(fabric, SwitchIndex(s)));
  }
  for (uint32_t e = 0; e < fabric.endpoint_count(); ++e) {
    RETURN_IF_ERROR(CheckEndpoint(fabric, EndpointIndex(e)));
  }
  RETURN_IF_ERROR(CheckLinks(fabric, times_seen));
  RETURN_IF_ERROR(CheckComponents(fabric));
  RETURN_IF_ERROR(CheckHosts(fabric));
  RETURN_IF_ERROR(CheckBundles(fabric));
  return CheckLids(fabric);
}

std::optional<VertexIndex> FindLid(const Fabric& fabric, Lid lid) {
  for (uint32_t v = 0; v < fabric.vertex_count(); ++v) {
    if (fabric.lid(VertexIndex(v)) == lid) return VertexIndex(v);
  }
  return std::nullopt;
}

}  // namespace coppice
