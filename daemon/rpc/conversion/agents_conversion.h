// coppice.v1 messages of the Agents service <-> the manager's plain structs.
#ifndef COPPICE_DAEMON_RPC_CONVERSION_AGENTS_CONVERSION_H_
#define COPPICE_DAEMON_RPC_CONVERSION_AGENTS_CONVERSION_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coppice/v1/agents.pb.h"
#include "daemon/manager/distances/agent_table.h"
#include "daemon/manager/distances/distance_store.h"
#include "daemon/manager/distances/measurement.h"

namespace coppice {

// INVALID_ARGUMENT: a port that is no GUID.
absl::StatusOr<AgentInfo> FromProto(const v1::AgentHello& hello);
PingPongOutcome FromProto(const v1::PingPongResult& result);
// INVALID_ARGUMENT: a transport that there is not.
absl::StatusOr<MeasureArgs> FromProto(const v1::MeasureDistancesRequest& request);
// None: unspecified. INVALID_ARGUMENT: as above.
absl::StatusOr<std::optional<Transport>> FromProto(v1::Transport transport);

void ToProto(const PingPong& task, v1::PingPongTask& message);
void ToProto(const AgentView& agent, v1::Agent& message);
void ToProto(const DistanceRecord& distance, v1::MeasuredDistance& message);
void ToProto(const MeasureStanding& standing, v1::MeasureProgress& message);
void ToProto(const MeasureStanding& standing, v1::MeasureSummary& message);

// Where a listing by pairs goes on: after this one; both empty: from the start. INVALID_ARGUMENT:
// not a token of such a listing.
absl::StatusOr<HostPair> ParsePairToken(absl::string_view token);
std::string PairToken(absl::string_view from, absl::string_view to);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CONVERSION_AGENTS_CONVERSION_H_
