// Who holds which nodes, from the text behind coppice-plan --held.
#ifndef COPPICE_DAEMON_TOOLS_HELD_NODES_H_
#define COPPICE_DAEMON_TOOLS_HELD_NODES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric.h"

namespace coppice {

// The hosts that a node list names (node_list.h), in its order; a host may be called by what reads
// as a list. INVALID_ARGUMENT as ParseNodeList; NOT_FOUND: no such hosts (names the first few).
absl::StatusOr<std::vector<HostIndex>> ResolveHosts(const Fabric& fabric, absl::string_view list);

struct HeldNodes {
  std::string holder;
  std::vector<HostIndex> hosts;
};

// "NODES HOLDER" a line: NODES is a list, HOLDER any word; who is named by several lines holds the
// nodes of all. Lines that are blank or begin with # are skipped. Holders are in the order in which
// they are named first. INVALID_ARGUMENT: another form, or a host twice; NOT_FOUND: no such hosts;
// both name `origin` and line.
absl::StatusOr<std::vector<HeldNodes>> ReadHeldNodes(const Fabric& fabric, absl::string_view text,
                                                     absl::string_view origin);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TOOLS_HELD_NODES_H_
