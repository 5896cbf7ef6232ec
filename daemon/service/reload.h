// The configuration in force, and how a file that was edited takes its place while the daemon runs:
// read and checked as a whole first, then every key that may change is put in force, all of them or
// none. Keys that may not are named, each time until the daemon is started again.
//
//   read --mistake--> config.refused, nothing changed
//     |good
//   store takes the rules' entries --fails--> config.refused, nothing changed
//     |                                        (all that follows cannot fail)
//   manager, administrators, log level --> config.reloaded
#ifndef COPPICE_DAEMON_SERVICE_RELOAD_H_
#define COPPICE_DAEMON_SERVICE_RELOAD_H_

#include <functional>
#include <mutex>

#include "absl/status/statusor.h"
#include "daemon/config/config.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/server.h"

namespace coppice {

// Thread-safe.
class Reloader final {
 public:
  // `running` is in force; `read` reads and checks the file again, with the command line over it;
  // null: there is no file. `manager` outlives this.
  Reloader(Config running, std::function<absl::StatusOr<Config>()> read, Manager* manager)
      : read_(std::move(read)), manager_(manager), running_(std::move(running)) {}

  // From here on it can reload. `server` outlives this, or a call of Attach with null.
  void Attach(RpcServer* server);

  // As Admin.Reload, for `by`, or for a signal if that is empty; UNAVAILABLE while no server is
  // attached. Says what happened as an event and in the log. Blocks: for a sweep under way and for
  // the store.
  absl::StatusOr<ReloadOutcome> Reload(const std::string& by);

  absl::Duration shutdown_grace() const;

 private:
  absl::StatusOr<ReloadOutcome> Apply();

  const std::function<absl::StatusOr<Config>()> read_;
  Manager* const manager_;
  mutable std::mutex mu_;
  // Guarded by mu_.
  Config running_;
  RpcServer* server_ = nullptr;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_SERVICE_RELOAD_H_
