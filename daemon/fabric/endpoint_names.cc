// Order of meaning: a host name first, since hosts may be called anything; then a GUID; then
// host/port. A host/port that two adapters of the host share is an error rather than a choice,
// because the wrong one of two ports would go unnoticed.
#include "daemon/fabric/endpoint_names.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace coppice {
namespace {

constexpr uint32_t kMaxSuggestions = 3;

std::optional<Guid> ParseGuid(absl::string_view text) {
  const bool is_marked = absl::ConsumePrefix(&text, "0x") || absl::ConsumePrefix(&text, "0X");
  uint64_t value;
  const bool is_hex = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
  const bool is_long_enough = is_marked ? !text.empty() && text.size() <= 16 : text.size() == 16;
  if (!is_hex || !is_long_enough || !absl::SimpleHexAtoi(text, &value)) return std::nullopt;
  return Guid(value);
}

// Hosts around the place where `name` would stand in the sorted list.
std::string NearbyHosts(const Fabric& fabric, absl::string_view name) {
  uint32_t low = 0, high = fabric.host_count();
  if (high == 0) return "the fabric has no hosts";
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (fabric.host_name(HostIndex(middle)) < name) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const uint32_t first = low > 0 ? low - 1 : 0;
  const uint32_t last = std::min(first + kMaxSuggestions, fabric.host_count());
  std::vector<absl::string_view> names;
  for (uint32_t h = first; h < last; ++h) names.push_back(fabric.host_name(HostIndex(h)));
  return absl::StrCat("near it are the hosts ", absl::StrJoin(names, ", "));
}

absl::StatusOr<EndpointIndex> PortOfHost(const Fabric& fabric, HostIndex host, uint32_t port,
                                         absl::string_view name) {
  std::optional<EndpointIndex> found;
  std::vector<std::string> ports;
  for (EndpointIndex e : fabric.endpoints_of_host(host)) {
    const EndpointInfo& info = fabric.endpoint(e);
    if (info.port.value() == port) {
      if (found) {
        return absl::InvalidArgumentError(absl::StrCat(
            "endpoint \"", name, "\" is ambiguous: port ", port, " is there on two adapters, as ",
            ToString(fabric.endpoint(*found).port_guid), " and ", ToString(info.port_guid),
            "; name the port's GUID"));
      }
      found = e;
    }
    if (ports.size() < 8) ports.push_back(absl::StrCat(info.port.value()));
  }
  if (found) return *found;
  return absl::NotFoundError(absl::StrCat("endpoint \"", name, "\": host ", fabric.host_name(host),
                                          " has no cabled port ", port, "; it has ",
                                          absl::StrJoin(ports, ", ")));
}

}  // namespace

absl::StatusOr<EndpointIndex> ResolveEndpoint(const Fabric& fabric, absl::string_view name) {
  if (name.empty()) {
    return absl::InvalidArgumentError(
        "empty endpoint name: give a host name, host/port or a port GUID");
  }
  if (const std::optional<HostIndex> host = fabric.FindHost(name)) {
    const absl::Span<const EndpointIndex> endpoints = fabric.endpoints_of_host(*host);
    if (!endpoints.empty()) return endpoints.front();
    return absl::NotFoundError(absl::StrCat("host ", name, " has no cabled port"));
  }
  if (const std::optional<Guid> guid = ParseGuid(name)) {
    if (const std::optional<EndpointIndex> e = fabric.FindEndpoint(*guid)) return *e;
    return absl::NotFoundError(absl::StrCat("no endpoint has the port GUID ", ToString(*guid),
                                            "; `coppicectl fabric nodes` lists them"));
  }
  const size_t slash = name.rfind('/');
  uint32_t port;
  if (slash != absl::string_view::npos && absl::SimpleAtoi(name.substr(slash + 1), &port)) {
    const absl::string_view host_name = name.substr(0, slash);
    if (const std::optional<HostIndex> host = fabric.FindHost(host_name)) {
      return PortOfHost(fabric, *host, port, name);
    }
    name = host_name;
  }
  return absl::NotFoundError(
      absl::StrCat("no host is named \"", name.substr(0, 256), "\"; ", NearbyHosts(fabric, name)));
}

}  // namespace coppice
