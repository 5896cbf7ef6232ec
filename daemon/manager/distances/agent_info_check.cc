#include "daemon/manager/distances/agent_info_check.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr size_t kLongestName = 255;
constexpr size_t kMostPorts = 64;
constexpr size_t kMostShown = 64;  // characters of what is refused

// Texts of the wire in messages: short, and nothing that a terminal would obey.
std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMostShown)), "\"");
}

bool IsWord(absl::string_view text) {
  return !text.empty() && text.size() <= kLongestName &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
}

bool IsAddress(absl::string_view text) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  return IsWord(text) && colon != absl::string_view::npos && colon > 0 &&
         absl::SimpleAtoi(text.substr(colon + 1), &port) && port >= 1 && port <= 0xffff;
}

absl::Status CheckMeasure(const char* name, double value, bool may_be_zero) {
  if (std::isfinite(value) && (value > 0 || (may_be_zero && value == 0))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("ping_pong.", name, ": ", value, " is no measurement; say an error instead"));
}

}  // namespace

absl::Status CheckAgentInfo(const AgentInfo& info) {
  if (!IsWord(info.host)) {
    return absl::InvalidArgumentError(absl::StrCat("hello.host: ", Quoted(info.host),
                                                   " is no host name; give 1 to ", kLongestName,
                                                   " characters without spaces"));
  }
  if (info.ports.size() > kMostPorts) {
    return absl::InvalidArgumentError(absl::StrCat("hello.port_guids: ", info.ports.size(),
                                                   " ports; a node has at most ", kMostPorts));
  }
  if (!info.measure_address.empty() && !IsAddress(info.measure_address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("hello.measure_address: ", Quoted(info.measure_address),
                     "; give HOST:PORT where other agents reach this one, or nothing"));
  }
  if (info.version.size() > kLongestName) {
    return absl::InvalidArgumentError(
        absl::StrCat("hello.version: more than ", kLongestName, " characters; give a version"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> HostOfAgent(const Fabric& fabric, const AgentInfo& info) {
  std::optional<HostIndex> host;
  for (const Guid port : info.ports) {
    const std::optional<EndpointIndex> endpoint = fabric.FindEndpoint(port);
    if (!endpoint.has_value()) continue;
    const HostIndex found = fabric.host(*endpoint);
    if (!host.has_value() || fabric.host_name(found) == info.host) host = found;
  }
  if (!host.has_value()) host = fabric.FindHost(info.host);
  if (!host.has_value()) host = fabric.FindHost(info.host.substr(0, info.host.find('.')));
  if (host.has_value()) return std::string(fabric.host_name(*host));
  return absl::NotFoundError(absl::StrCat(
      "the fabric has no host ", info.host,
      info.ports.empty() ? "" : ", and none of the ports that its agent names",
      "; coppicectl fabric nodes lists the hosts: start the agent with --host as they are called"));
}

absl::Status CheckOutcome(const PingPongOutcome& outcome) {
  if (!outcome.error.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckMeasure("latency_us", outcome.latency_us, false));
  RETURN_IF_ERROR(CheckMeasure("latency_spread_us", outcome.latency_spread_us, true));
  RETURN_IF_ERROR(CheckMeasure("bandwidth_gbps", outcome.bandwidth_gbps, false));
  RETURN_IF_ERROR(CheckMeasure("bandwidth_spread_gbps", outcome.bandwidth_spread_gbps, true));
  return CheckMeasure("samples", outcome.samples, false);
}

}  // namespace coppice
