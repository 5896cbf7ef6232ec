// The daemon that coppice-plan asks: all of its parts in this process, on a fabric from a file or a
// model that is read once. It has no address and no thread that waits for time to pass: leases do
// not run out.
#ifndef COPPICE_DAEMON_PLAN_OFFLINE_DAEMON_H_
#define COPPICE_DAEMON_PLAN_OFFLINE_DAEMON_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/fabric/fabric.h"
#include "daemon/tools/tree_inputs.h"

namespace grpc {
class Channel;
}

namespace coppice {

// What a live daemon would read from the subnet and from its configuration.
struct OfflineOptions {
  TreeOptions fabric;    // fabric, routes and load; profile; what switches have
  std::string held;      // file: who holds which nodes
  std::string down;      // nodes without a cable: a list, or a file with lists
  std::string database;  // empty: all is forgotten at the end
};

// The options by name.
void AddOfflineOptions(CLI::App& app, OfflineOptions& options);

// Starts the daemon, to be called over what is returned as over any channel to a daemon; it lives
// as long as the channel. Reads all that the options name. Without a fabric, where none is needed,
// it answers what its profile and its database know. Errors are those of the readers, of
// SqliteStore::Open and of Manager, and name file or option; INVALID_ARGUMENT: no fabric.
absl::StatusOr<std::shared_ptr<grpc::Channel>> StartOfflineDaemon(const OfflineOptions& options,
                                                                  bool needs_fabric);

// --- Who holds which nodes, from the text behind --held ---

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

#endif  // COPPICE_DAEMON_PLAN_OFFLINE_DAEMON_H_
