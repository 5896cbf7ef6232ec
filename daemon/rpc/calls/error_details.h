// From a domain status to what goes over the wire: adds the google.rpc details that tell a program
// what to do, which the manager, knowing no protobuf, cannot add itself.
#ifndef COPPICE_DAEMON_RPC_CALLS_ERROR_DETAILS_H_
#define COPPICE_DAEMON_RPC_CALLS_ERROR_DETAILS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coppice {

// `object` is what the call was about ("job:7", "tree:41", "fabric").
//   UNAVAILABLE          RetryInfo, one second
//   RESOURCE_EXHAUSTED   QuotaFailure, one violation per line of kFullSwitchesPayload, if there
//   FAILED_PRECONDITION  PreconditionFailure naming `object`
//   ABORTED              ErrorInfo FABRIC_MOVED naming `object`
// A detail of that type that the status already has is kept. INTERNAL, UNKNOWN and DATA_LOSS are
// logged here, where they are handled.
grpc::Status ToWire(absl::Status status, absl::string_view object);

// With RetryInfo, one second. OK stays so.
absl::Status WithRetry(absl::Status status);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CALLS_ERROR_DETAILS_H_
