#include "daemon/rpc/conversion/agents_conversion.h"

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/conversion/identifiers.h"

namespace coppice {
namespace {

constexpr std::pair<Transport, v1::Transport> kTransports[] = {
    {Transport::kTcp, v1::TRANSPORT_TCP}, {Transport::kVerbs, v1::TRANSPORT_VERBS}};

}  // namespace

absl::StatusOr<std::optional<Transport>> FromProto(v1::Transport transport) {
  return ValueOf(kTransports, transport, "transport");
}

absl::StatusOr<AgentInfo> FromProto(const v1::AgentHello& hello) {
  AgentInfo info;
  info.host = hello.host();
  for (const std::string& text : hello.port_guids()) {
    const absl::StatusOr<Guid> port = ParseGuid(text);
    if (!port.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("hello.port_guids: ", port.status().message()));
    }
    info.ports.push_back(*port);
  }
  info.cores = hello.cores();
  info.packages = hello.packages();
  info.numa_nodes = hello.numa_nodes();
  info.version = hello.version();
  info.measure_address = hello.measure_address();
  info.has_verbs = hello.verbs();
  info.last_database = hello.last_database();
  return info;
}

PingPongOutcome FromProto(const v1::PingPongResult& result) {
  return {result.id(),
          result.error(),
          result.latency_us(),
          result.latency_spread_us(),
          result.bandwidth_gbps(),
          result.bandwidth_spread_gbps(),
          result.samples(),
          result.transport() == v1::TRANSPORT_VERBS ? Transport::kVerbs : Transport::kTcp,
          result.remark()};
}

absl::StatusOr<MeasureArgs> FromProto(const v1::MeasureDistancesRequest& request) {
  MeasureArgs args;
  args.hosts.assign(request.hosts().begin(), request.hosts().end());
  if (request.complete_up_to() != 0) args.complete_up_to = request.complete_up_to();
  if (request.latency_samples() != 0) args.latency_samples = request.latency_samples();
  if (request.bandwidth_samples() != 0) args.bandwidth_samples = request.bandwidth_samples();
  if (request.bandwidth_bytes() != 0) args.bandwidth_bytes = request.bandwidth_bytes();
  ASSIGN_OR_RETURN(args.transport, FromProto(request.transport()));
  return args;
}

void ToProto(const PingPong& task, v1::PingPongTask& message) {
  message.set_id(task.id);
  message.set_token(task.token);
  message.set_active(task.active);
  message.set_peer(task.peer);
  message.set_peer_address(task.peer_address);
  message.set_latency_samples(task.latency_samples);
  message.set_bandwidth_samples(task.bandwidth_samples);
  message.set_bandwidth_bytes(task.bandwidth_bytes);
  *message.mutable_timeout() = ToDuration(task.timeout);
  message.set_transport(WireOf(kTransports, task.transport));
  message.set_or_tcp(task.or_tcp);
}

void ToProto(const AgentView& agent, v1::Agent& message) {
  v1::AgentHello& hello = *message.mutable_hello();
  hello.set_host(agent.info.host);
  for (const Guid port : agent.info.ports) hello.add_port_guids(ToString(port));
  hello.set_cores(agent.info.cores);
  hello.set_packages(agent.info.packages);
  hello.set_numa_nodes(agent.info.numa_nodes);
  hello.set_version(agent.info.version);
  hello.set_measure_address(agent.info.measure_address);
  hello.set_verbs(agent.info.has_verbs);
  message.set_connected(agent.connected);
  *message.mutable_since() = ToTimestamp(agent.since);
}

void ToProto(const DistanceRecord& distance, v1::MeasuredDistance& message) {
  message.set_from(distance.host_a);
  message.set_to(distance.host_b);
  message.set_latency_us(distance.latency_us);
  message.set_latency_spread_us(distance.latency_spread_us);
  message.set_bandwidth_gbps(distance.bandwidth_gbps);
  message.set_bandwidth_spread_gbps(distance.bandwidth_spread_gbps);
  message.set_samples(distance.samples);
  message.set_transport(WireOf(kTransports, distance.transport));
  if (distance.samples > 0) *message.mutable_measured() = ToTimestamp(distance.measured);
}

void ToProto(const MeasureStanding& standing, v1::MeasureProgress& message) {
  message.set_round(standing.round);
  message.set_rounds(standing.rounds);
  message.set_pairs(standing.pairs);
  message.set_failed(standing.failed);
}

void ToProto(const MeasureStanding& standing, v1::MeasureSummary& message) {
  message.set_pairs(standing.pairs);
  message.set_rounds(standing.rounds);
  for (const std::string& failure : standing.failures) message.add_failures(failure);
  *message.mutable_elapsed() = ToDuration(standing.elapsed);
  message.set_failed(standing.failed);
  message.set_over_verbs(standing.over_verbs);
  for (const std::string& remark : standing.remarks) message.add_remarks(remark);
}

// "5:node1node2": the length of the first name, then both.
std::string PairToken(absl::string_view from, absl::string_view to) {
  return absl::StrCat(from.size(), ":", from, to);
}

absl::StatusOr<HostPair> ParsePairToken(absl::string_view token) {
  if (token.empty()) return HostPair();
  const size_t colon = token.find(':');
  size_t length = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(token.substr(0, colon), &length) ||
      length > token.size() - colon - 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("page_token: \"", absl::CHexEscape(token.substr(0, 64)),
                     "\" is none of this listing; begin without one"));
  }
  const absl::string_view names = token.substr(colon + 1);
  return HostPair(names.substr(0, length), names.substr(length));
}

}  // namespace coppice
