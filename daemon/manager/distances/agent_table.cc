#include "daemon/manager/distances/agent_table.h"

#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/distances/measurement.h"
#include "proto/text/plain_text.h"

namespace coppice {
AgentTable::Entered AgentTable::Enter(AgentInfo info, std::shared_ptr<const AgentLink> link,
                                      absl::Time now, std::string identity) {
  Entered entered;
  entered.session = ++last_session_;
  std::string host = info.host;
  Agent& agent = agents_[host];
  if (agent.session != 0) {
    entered.replaced = agent.session;
    entered.old_link = std::move(agent.link);
    sessions_.erase(agent.session);
  } else {
    gone_.erase({agent.since, host});
  }
  agent = {std::move(info), entered.session, now, std::move(link), std::move(identity)};
  sessions_.emplace(entered.session, std::move(host));
  return entered;
}

bool AgentTable::Leave(AgentSession session, absl::Time now) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return false;
  Agent& agent = agents_.find(found->second)->second;
  agent.session = 0;
  agent.link = nullptr;
  agent.since = now;
  gone_.emplace(now, std::move(found->second));
  sessions_.erase(found);
  ForgetOldest();
  return true;
}

void AgentTable::ForgetOldest() {
  while (gone_.size() > kMaxGone) {
    agents_.erase(gone_.begin()->second);
    gone_.erase(gone_.begin());
  }
}

const AgentTable::Agent* AgentTable::Find(absl::string_view host) const {
  const auto found = agents_.find(host);
  return found == agents_.end() || found->second.session == 0 ? nullptr : &found->second;
}

const AgentTable::Agent* AgentTable::Find(AgentSession session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &agents_.find(found->second)->second;
}

std::vector<AgentView> AgentTable::List(absl::string_view after, size_t limit) const {
  std::vector<AgentView> views;
  for (auto next = agents_.upper_bound(after); next != agents_.end() && views.size() < limit;
       ++next) {
    const Agent& agent = next->second;
    views.push_back({agent.info, agent.session != 0, agent.since});
  }
  return views;
}

std::vector<std::string> AgentTable::Connected() const {
  std::vector<std::string> hosts;
  for (const auto& [host, agent] : agents_) {
    if (agent.session != 0) hosts.push_back(host);
  }
  return hosts;
}

namespace {

constexpr size_t kMaxPorts = 64;
constexpr size_t kMaxShown = 64;         // characters of what is refused
constexpr uint32_t kMaxParts = 1 << 16;  // cores of a node, and whatever has some of them

// What can be true of two nodes; beyond it somebody errs or lies, and one such figure would
// outweigh all others in estimates and searches. In 10 ns a signal goes 2 m in a fibre, without any
// adapter. Of 10 s nobody waits for 8 bytes: a ping-pong counts on 10 ms (PairTimeout).
constexpr double kMinLatencyUs = 0.01, kMaxLatencyUs = 1e7;
// Twice twelve lanes of the fastest InfiniBand (GDR, 4,800 Gb/s); and 1 kb/s.
constexpr double kMinBandwidthGbps = 1e-6, kMaxBandwidthGbps = 1e4;

// Texts of the wire in messages: short, and nothing that a terminal would obey.
std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMaxShown)), "\"");
}

absl::string_view ShortHost(absl::string_view host) { return host.substr(0, host.find('.')); }

uint32_t HostsCalled(const Fabric& fabric, absl::string_view name) {
  uint32_t count = 0;
  for (uint32_t h = 0; h < fabric.host_count(); ++h) {
    count += ShortHost(fabric.host_name(HostIndex(h))) == name;
  }
  return count;
}

absl::Status CheckMeasure(const char* name, double value, double least, double most) {
  if (value >= least && value <= most) return absl::OkStatus();  // not so of NaN
  return absl::InvalidArgumentError(absl::StrCat("ping_pong.", name, ": ", value,
                                                 " is no measurement between two nodes, which is ",
                                                 least, " to ", most, "; say an error instead"));
}

absl::Status CheckCount(const char* name, uint32_t value) {
  if (value <= kMaxParts) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("hello.", name, ": ", value, "; a node has at most ", kMaxParts));
}

}  // namespace

absl::Status CheckAgentInfo(const AgentInfo& info) {
  if (!IsWord(info.host)) {
    return absl::InvalidArgumentError(absl::StrCat("hello.host: ", Quoted(info.host),
                                                   " is no host name; give 1 to ", kMaxWordBytes,
                                                   " characters without spaces"));
  }
  if (info.ports.size() > kMaxPorts) {
    return absl::InvalidArgumentError(absl::StrCat("hello.port_guids: ", info.ports.size(),
                                                   " ports; a node has at most ", kMaxPorts));
  }
  if (!info.measure_address.empty() && !IsHostAndPort(info.measure_address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("hello.measure_address: ", Quoted(info.measure_address),
                     "; give HOST:PORT where other agents reach this one, or nothing"));
  }
  if (info.version.size() > kMaxWordBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("hello.version: more than ", kMaxWordBytes, " characters; give a version"));
  }
  RETURN_IF_ERROR(CheckCount("cores", info.cores));
  RETURN_IF_ERROR(CheckCount("packages", info.packages));
  return CheckCount("numa_nodes", info.numa_nodes);
}

absl::Status CheckHostIsOf(const Fabric& fabric, const AgentIdentity& identity,
                           const std::string& host) {
  if (identity.host.empty() || identity.host == host) return absl::OkStatus();
  const absl::string_view own = identity.host, claimed = host;
  const bool is_short = (own.find('.') == own.npos) != (claimed.find('.') == claimed.npos);
  if (is_short && ShortHost(own) == ShortHost(claimed)) {
    if (HostsCalled(fabric, ShortHost(own)) <= 1) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat(
        "host ", Quoted(host), ": you come as ", Quoted(identity.name), ", the agent of ",
        Quoted(identity.host), ", and the fabric has several hosts of that name up to the dot; ",
        "give each agent a certificate with its host's whole name, as the fabric has it"));
  }
  return absl::PermissionDeniedError(
      absl::StrCat("host ", Quoted(host), ": you come as ", Quoted(identity.name),
                   ", which is the agent of ", Quoted(identity.host),
                   " and of no other; give the agent of each host a certificate of its own"));
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
  RETURN_IF_ERROR(CheckMeasure("latency_us", outcome.latency_us, kMinLatencyUs, kMaxLatencyUs));
  RETURN_IF_ERROR(CheckMeasure("latency_spread_us", outcome.latency_spread_us, 0, kMaxLatencyUs));
  RETURN_IF_ERROR(
      CheckMeasure("bandwidth_gbps", outcome.bandwidth_gbps, kMinBandwidthGbps, kMaxBandwidthGbps));
  RETURN_IF_ERROR(
      CheckMeasure("bandwidth_spread_gbps", outcome.bandwidth_spread_gbps, 0, kMaxBandwidthGbps));
  return CheckMeasure("samples", outcome.samples, 1, MeasureArgs::kMaxLatencySamples);
}

}  // namespace coppice
