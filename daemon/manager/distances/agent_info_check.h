// Whether what an agent says of its node can be true, and of which of the fabric's hosts it speaks.
#ifndef COPPICE_DAEMON_MANAGER_DISTANCES_AGENT_INFO_CHECK_H_
#define COPPICE_DAEMON_MANAGER_DISTANCES_AGENT_INFO_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/fabric/fabric.h"
#include "daemon/manager/distances/agent.h"

namespace coppice {

// INVALID_ARGUMENT, naming the field: no host name, or one that is too long or has control
// characters or spaces; too many ports, cores, packages or NUMA nodes; a measure_address that is
// not HOST:PORT; a version that is too long.
absl::Status CheckAgentInfo(const AgentInfo& info);

// The host that has one of the ports, the one of that name before others; else the one of that
// name; else, for "node1.site.org", the one of the name up to the first dot. NOT_FOUND names both.
absl::StatusOr<std::string> HostOfAgent(const Fabric& fabric, const AgentInfo& info);

// PERMISSION_DENIED: `identity` is that of another host's agent than of the fabric's `host`. Names
// are the same up to a first dot where one of them has none, and no other host of the fabric is
// called so up to its dot: else nobody could tell whose it is. O(hosts) for those.
absl::Status CheckHostIsOf(const Fabric& fabric, const AgentIdentity& identity,
                           const std::string& host);

// INVALID_ARGUMENT, naming the number and its bounds: not a measurement that can be true of two
// nodes, and not an error either.
absl::Status CheckOutcome(const PingPongOutcome& outcome);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_DISTANCES_AGENT_INFO_CHECK_H_
