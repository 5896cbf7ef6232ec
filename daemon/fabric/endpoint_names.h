// What users call an endpoint: from what is typed to a place in the fabric, with a hint when it is
// not there. Knows nothing of requests, jobs and files.
#ifndef COPPICE_DAEMON_FABRIC_ENDPOINT_NAMES_H_
#define COPPICE_DAEMON_FABRIC_ENDPOINT_NAMES_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

// Finds the endpoint that a user names: host name (its first cabled port), "host/port", or a port
// GUID: 16 hex digits, or 0x and up to 16 of them, as ibnetdiscover leaves out leading zeros.
// NOT_FOUND names it and suggests up to three hosts that are called similarly; INVALID_ARGUMENT:
// empty, or host/port of two adapters.
absl::StatusOr<EndpointIndex> ResolveEndpoint(const Fabric& fabric, absl::string_view name);

}  // namespace coppice

#endif  // COPPICE_DAEMON_FABRIC_ENDPOINT_NAMES_H_
