#include "tests/unit/rpc/request_properties.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "coppice/v1/agents.pb.h"
#include "coppice/v1/switches.pb.h"
#include "daemon/manager/distances/agent_table.h"
#include "daemon/rpc/conversion/fabric_conversion.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/service.h"
#include "google/protobuf/stubs/logging.h"

namespace coppice {
namespace {

constexpr uint64_t kVersion = 7;
const absl::Time kNow = absl::FromUnixSeconds(1'790'000'000);

// A refusal is one of a client's, and says why in a line of its own length.
std::string BrokenBy(const absl::Status& refused, absl::string_view what) {
  constexpr size_t kMaxMessageBytes = 400;
  if (!absl::IsInvalidArgument(refused) && !absl::IsAborted(refused)) {
    return absl::StrCat(what, ": ", refused.ToString());
  }
  if (refused.message().empty() || refused.message().size() > kMaxMessageBytes) {
    return absl::StrCat(what, ": a message of ", refused.message().size(), " bytes");
  }
  return "";
}

}  // namespace

std::string BrokenByHistoryRequest(absl::string_view data) {
  const google::protobuf::LogSilencer quiet;  // of text that is no UTF-8
  v1::GetPortHistoryRequest request;
  if (!request.ParseFromArray(data.data(), static_cast<int>(data.size()))) return "";
  const absl::StatusOr<HistoryQuery> query = FromProto(request, kNow);
  if (!query.ok()) return BrokenBy(query.status(), "history");
  if (query->port < 1 || query->port > 254) return "history: no port";
  if (query->start > query->end) return "history: it ends before it begins";
  const auto resolution = static_cast<int>(query->resolution);
  return resolution >= 1 && resolution <= 3 ? "" : "history: no resolution";
}

std::string BrokenByEventsRequest(absl::string_view data) {
  const google::protobuf::LogSilencer quiet;
  v1::ListEventsRequest request;
  if (!request.ParseFromArray(data.data(), static_cast<int>(data.size()))) return "";
  const absl::StatusOr<EventFilter> filter = FromProto(request);
  if (!filter.ok()) return BrokenBy(filter.status(), "events");
  if (filter->limit < 2 || filter->limit > 10'001) return "events: no page and one more";
  if (filter->after_id < 0) return "events: an id below 0";
  return filter->start <= filter->end ? "" : "events: it ends before it begins";
}

std::string BrokenByAgentMessage(absl::string_view data) {
  const google::protobuf::LogSilencer quiet;
  v1::AgentMessage message;
  if (!message.ParseFromArray(data.data(), static_cast<int>(data.size()))) return "";
  if (message.has_hello()) {
    const absl::StatusOr<AgentInfo> info = FromProto(message.hello());
    const absl::Status status = info.ok() ? CheckAgentInfo(*info) : info.status();
    if (!status.ok()) return BrokenBy(status, "hello");
    if (info->host.empty() || info->host.find(' ') != std::string::npos) return "hello: no host";
    if (info->ports.size() > 64) return "hello: many ports";
  }
  const PingPongOutcome outcome = FromProto(message.ping_pong());
  const absl::Status status = CheckOutcome(outcome);
  if (!status.ok()) return BrokenBy(status, "ping_pong");
  const bool is_measured = outcome.latency_us > 0 && outcome.bandwidth_gbps > 0 &&
                           outcome.latency_spread_us >= 0 && outcome.bandwidth_spread_gbps >= 0;
  return is_measured || !outcome.error.empty() ? "" : "ping_pong: no measurement";
}

std::string BrokenBySwitchMessage(absl::string_view data) {
  const google::protobuf::LogSilencer quiet;
  v1::SwitchMessage message;
  if (!message.ParseFromArray(data.data(), static_cast<int>(data.size()))) return "";
  const SwitchReport report = FromProto(message.report());
  if (report.broken.size() != static_cast<size_t>(message.report().broken_size())) return "broken";
  if (!message.has_hello()) return "";
  const absl::StatusOr<SwitchHello> hello = FromProto(message.hello());
  const absl::Status status = hello.ok() ? CheckSwitchHello(*hello) : hello.status();
  if (!status.ok()) return BrokenBy(status, "hello");
  const SwitchAbilities& able = hello->abilities;
  const CarriedTree widest{{}, {}, {{hello->guid, Guid(0), 0, able.children}}};
  const CarriageRecord terms = TermsFor(widest, {able});
  const uint64_t taken =
      uint64_t{terms.segment_bytes} * terms.window * able.children * able.entries;
  if (terms.segment_bytes == 0 || terms.window == 0) return "hello: nothing in flight";
  return taken > able.memory_bytes ? "hello: entries take more than the memory" : "";
}

std::string BrokenByIdentifier(absl::string_view text) {
  const absl::StatusOr<Guid> guid = ParseGuid(text);
  if (guid.ok() && absl::AsciiStrToLower(absl::StripPrefix(text, "0x")) !=
                       absl::StripPrefix(ToString(*guid), "0x")) {
    return absl::StrCat("GUID ", ToString(*guid));
  }
  if (!guid.ok() && !BrokenBy(guid.status(), "GUID").empty())
    return BrokenBy(guid.status(), "GUID");
  const absl::StatusOr<JobId> job = ParseJobId(text);
  const absl::StatusOr<TreeId> tree = ParseTreeId(text);
  const absl::StatusOr<int64_t> token = ParseIdToken(text);
  if (job.ok() != tree.ok() || (job.ok() && job->value() < 1)) return "id";
  if (token.ok() != (job.ok() || text.empty())) return "id token";
  if (token.ok() && !text.empty() && *token != job->value()) return "id token of another id";
  const absl::StatusOr<HostPair> pair = ParsePairToken(text);
  if (!pair.ok() && !BrokenBy(pair.status(), "pair token").empty()) {
    return BrokenBy(pair.status(), "pair token");
  }
  if (pair.ok()) {
    const absl::StatusOr<HostPair> same = ParsePairToken(PairToken(pair->first, pair->second));
    if (!same.ok() || *same != *pair) return "pair token";
  }
  const absl::StatusOr<uint32_t> position = ParseFabricToken(text, kVersion);
  if (!position.ok()) return BrokenBy(position.status(), "fabric token");
  const absl::StatusOr<uint32_t> again =
      ParseFabricToken(FabricToken(kVersion, *position), kVersion);
  return again.ok() && *again == *position ? "" : "fabric token";
}

}  // namespace coppice
