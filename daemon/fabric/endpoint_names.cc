// Order of meaning: a host name first, since hosts may be called anything; then a GUID; then
// host/port. A host/port that two adapters of the host share is an error rather than a choice,
// because the wrong one of two ports would go unnoticed.
#include "daemon/fabric/endpoint_names.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "proto/text/node_list.h"

namespace coppice {
namespace {

constexpr size_t kMaxSuggestions = 3;
// Letters of a name that is not there: told, and compared with hosts' names, which come from node
// descriptions of 64 letters (IBA vol. 1, 14.2.5.2).
constexpr size_t kMaxNameTold = 256, kMaxNameCompared = 64;

std::optional<Guid> ParseGuid(absl::string_view text) {
  const bool is_marked = absl::ConsumePrefix(&text, "0x") || absl::ConsumePrefix(&text, "0X");
  uint64_t value;
  const bool is_hex = absl::c_all_of(
      text, [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); });
  const bool is_long_enough = is_marked ? !text.empty() && text.size() <= 16 : text.size() == 16;
  if (!is_hex || !is_long_enough || !absl::SimpleHexAtoi(text, &value)) return std::nullopt;
  return Guid(value);
}

// Letters to insert, delete or replace to make `b` of `a` (Levenshtein 1966; one row of Wagner and
// Fischer's table, 1974). O(|a| |b|).
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

// The hosts whose names differ from `name` in the fewest letters, in the order of their names where
// equally many. Only names that have something in common with it: where every letter would have to
// change, the host is no more likely meant than any other.
std::vector<absl::string_view> SimilarHosts(const Fabric& fabric, absl::string_view name) {
  std::vector<std::pair<size_t, absl::string_view>> hosts;
  for (uint32_t h = 0; h < fabric.host_count(); ++h) {
    const absl::string_view host = fabric.host_name(HostIndex(h));
    const size_t distance = EditDistance(name, host);
    if (distance < std::max(name.size(), host.size())) hosts.emplace_back(distance, host);
  }
  const auto end = hosts.begin() + std::min(hosts.size(), kMaxSuggestions);
  std::partial_sort(hosts.begin(), end, hosts.end());
  std::vector<absl::string_view> names;
  for (auto host = hosts.begin(); host != end; ++host) names.push_back(host->second);
  return names;
}

// "n1", "n1 or n2", "n1, n2 or n3".
std::string Alternatives(const std::vector<absl::string_view>& names) {
  const size_t last = names.size() - 1;
  if (last == 0) return std::string(names[0]);
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + last, ", "), " or ",
                      names[last]);
}

// What to do about a host name that is not there. O(hosts * letters^2), as only an error's text
// may.
std::string Hint(const Fabric& fabric, absl::string_view name) {
  if (fabric.host_count() == 0) return "the fabric has no hosts";
  const std::vector<absl::string_view> similar =
      SimilarHosts(fabric, name.substr(0, kMaxNameCompared));
  if (!similar.empty()) return absl::StrCat("did you mean ", Alternatives(similar), "?");
  return absl::StrCat("hosts are called like ", fabric.host_name(HostIndex(0)),
                      "; `fabric nodes` lists them");
}

// What tells an endpoint from another with the same host and port.
std::string DeviceOf(const Fabric& fabric, EndpointIndex endpoint) {
  const absl::string_view device =
      SplitNodeDescription(fabric.adapter(endpoint).description).second;
  return device.empty() ? ToString(fabric.endpoint(endpoint).port_guid) : std::string(device);
}

bool IsDevice(const Fabric& fabric, EndpointIndex endpoint, absl::string_view device) {
  return device == DeviceOf(fabric, endpoint) ||
         ParseGuid(device) == fabric.endpoint(endpoint).port_guid;
}

// `device`: empty if none was named.
absl::StatusOr<EndpointIndex> PortOfHost(const Fabric& fabric, HostIndex host, uint32_t port,
                                         absl::string_view device, absl::string_view name) {
  std::optional<EndpointIndex> found;
  std::vector<std::string> ports;
  for (EndpointIndex e : fabric.endpoints_of_host(host)) {
    if (ports.size() < 8) {
      const std::string one = EndpointName(fabric, e);
      ports.push_back(one.substr(one.rfind('/') + 1));
    }
    if (fabric.endpoint(e).port.value() != port) continue;
    if (!device.empty() && !IsDevice(fabric, e, device)) continue;
    if (found) {
      const auto told = [&](EndpointIndex one) {
        return absl::StrCat(EndpointName(fabric, one), " (",
                            ToString(fabric.endpoint(one).port_guid), ")");
      };
      return absl::InvalidArgumentError(absl::StrCat("endpoint \"", name, "\" is ambiguous: port ",
                                                     port, " is there on two adapters; name ",
                                                     told(*found), " or ", told(e)));
    }
    found = e;
  }
  if (found) return *found;
  return absl::NotFoundError(absl::StrCat("endpoint \"", name, "\": host ", fabric.host_name(host),
                                          " has no cabled port ", name.substr(name.rfind('/') + 1),
                                          "; it has ", absl::StrJoin(ports, ", ")));
}

struct Named {
  absl::string_view host, device;
  uint32_t adapter;
  bool operator<(const Named& other) const {
    return std::tie(host, device, adapter) < std::tie(other.host, other.device, other.adapter);
  }
  bool Twin(const Named& other) const { return host == other.host && device == other.device; }
};

// Gives adapters that cannot be told apart, or have no name at all, hosts of their own, by their
// GUIDs; the names are kept in `own_names`. True if there were any. `named` is sorted.
bool NameTwinsApart(const std::vector<AdapterInfo>& adapters, std::vector<Named>& named,
                    std::vector<std::string>& own_names) {
  std::vector<size_t> twins;
  for (size_t i = 0; i < named.size(); ++i) {
    const bool twin = (i > 0 && named[i].Twin(named[i - 1])) ||
                      (i + 1 < named.size() && named[i].Twin(named[i + 1]));
    if (twin || named[i].host.empty()) twins.push_back(i);
  }
  own_names.reserve(twins.size());  // the views into them must last
  for (const size_t i : twins) {
    const std::string guid = ToString(adapters[named[i].adapter].guid);
    own_names.push_back(named[i].host.empty() ? guid : absl::StrCat(named[i].host, "#", guid));
  }
  for (size_t i = 0; i < twins.size(); ++i) named[twins[i]].host = own_names[i];
  return !twins.empty();
}

}  // namespace

std::string EndpointName(const Fabric& fabric, EndpointIndex endpoint) {
  const EndpointInfo& info = fabric.endpoint(endpoint);
  const HostIndex host = fabric.host(endpoint);
  const std::string name = absl::StrCat(fabric.host_name(host), "/", uint32_t{info.port.value()});
  for (const EndpointIndex other : fabric.endpoints_of_host(host)) {
    if (other != endpoint && fabric.endpoint(other).port == info.port) {
      return absl::StrCat(name, "@", DeviceOf(fabric, endpoint));
    }
  }
  return name;
}

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
                                            "; `fabric nodes` lists them"));
  }
  const size_t slash = name.rfind('/');
  const std::pair<absl::string_view, absl::string_view> port_and_device = absl::StrSplit(
      slash == absl::string_view::npos ? "" : name.substr(slash + 1), absl::MaxSplits('@', 1));
  uint32_t port;
  if (absl::SimpleAtoi(port_and_device.first, &port)) {
    const absl::string_view host_name = name.substr(0, slash);
    if (const std::optional<HostIndex> host = fabric.FindHost(host_name)) {
      return PortOfHost(fabric, *host, port, port_and_device.second, name);
    }
    name = host_name;
  }
  name = name.substr(0, kMaxNameTold);
  return absl::NotFoundError(absl::StrCat("no host is named \"", name, "\"; ", Hint(fabric, name)));
}

absl::StatusOr<std::vector<std::string>> ExpandEndpointNames(const Fabric& fabric,
                                                             absl::Span<const std::string> names,
                                                             size_t limit,
                                                             absl::string_view field) {
  std::vector<std::string> expanded;
  expanded.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const absl::string_view name = names[i];
    const bool is_list = LooksLikeNodeList(name) && !fabric.FindHost(name) &&
                         !fabric.FindHost(name.substr(0, name.rfind('/')));
    if (is_list) {
      absl::StatusOr<std::vector<std::string>> list = ParseNodeList(name);
      if (!list.ok()) return Annotate(list.status(), absl::StrCat(field, "[", i, "]"));
      std::move(list->begin(), list->end(), std::back_inserter(expanded));
    } else {
      expanded.emplace_back(name);
    }
    if (expanded.size() > limit) {
      return absl::InvalidArgumentError(absl::StrCat(field, ": more than ", limit, " names"));
    }
  }
  return expanded;
}

std::pair<absl::string_view, absl::string_view> SplitNodeDescription(
    absl::string_view description) {
  static constexpr std::array<absl::string_view, 14> kDevices = {
      "HCA",  "mlx", "hfi",  "qib",   "ib",    "mthca", "nes",
      "cxgb", "hns", "bnxt", "irdma", "erdma", "efa",   "rxe"};
  description = absl::StripAsciiWhitespace(description);
  const size_t space = description.find_last_of(" \t");
  if (space == absl::string_view::npos) return {description, {}};
  const absl::string_view last = description.substr(space + 1);
  const bool is_device =
      absl::ascii_isdigit(static_cast<unsigned char>(last.back())) &&
      absl::c_any_of(kDevices, [&](absl::string_view d) { return absl::StartsWith(last, d); });
  if (!is_device) return {description, {}};
  return {absl::StripAsciiWhitespace(description.substr(0, space)), last};
}

std::vector<std::string> NameHosts(std::vector<AdapterInfo>& adapters) {
  std::vector<Named> named(adapters.size());
  for (uint32_t i = 0; i < named.size(); ++i) {
    const auto [host, device] = SplitNodeDescription(adapters[i].description);
    named[i] = {host, device, i};
  }
  absl::c_sort(named);
  std::vector<std::string> own_names;
  if (NameTwinsApart(adapters, named, own_names)) absl::c_sort(named);
  std::vector<std::string> names;
  for (const Named& n : named) {
    if (names.empty() || names.back() != n.host) names.emplace_back(n.host);
    adapters[n.adapter].host = HostIndex(static_cast<uint32_t>(names.size() - 1));
  }
  return names;
}

}  // namespace coppice
