// The daemon that coppice-plan asks: all of its parts in this process, on a fabric from a file or a
// model that is read once. It has no address and no thread that waits for time to pass: leases do
// not run out.
#ifndef COPPICE_DAEMON_PLAN_OFFLINE_DAEMON_H_
#define COPPICE_DAEMON_PLAN_OFFLINE_DAEMON_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
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

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLAN_OFFLINE_DAEMON_H_
