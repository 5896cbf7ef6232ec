// The Agents service: coppice/v1/agents.proto over the meter and the kept distances. Status codes
// are stated there. Here is what it reads of agents and of tokens.
#ifndef COPPICE_DAEMON_RPC_AGENTS_SERVICE_H_
#define COPPICE_DAEMON_RPC_AGENTS_SERVICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coppice/v1/agents.pb.h"
#include "daemon/manager/distances/distance_meter.h"
#include "daemon/manager/distances/distance_store.h"
#include "daemon/manager/distances/measurement.h"

namespace coppice {

// INVALID_ARGUMENT: a port that is no GUID.
absl::StatusOr<AgentInfo> FromProto(const v1::AgentHello& hello);
PingPongOutcome FromProto(const v1::PingPongResult& result);

// Where a listing by pairs goes on: after this one; both empty: from the start. INVALID_ARGUMENT:
// not a token of such a listing.
absl::StatusOr<HostPair> ParsePairToken(absl::string_view token);
std::string PairToken(absl::string_view from, absl::string_view to);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_AGENTS_SERVICE_H_
