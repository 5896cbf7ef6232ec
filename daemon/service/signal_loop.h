// What the daemon's main thread does once everything runs: waits for signals, has SIGHUP reload on
// a thread of its own, and tells the service manager how it is.
//
// A reload waits for a sweep under way, for the store and for the file system. The service manager
// hears signs of life meanwhile, and they come at their time however often SIGHUP comes; several
// that come during a reload are answered by one more.
#ifndef COPPICE_DAEMON_SERVICE_SIGNAL_LOOP_H_
#define COPPICE_DAEMON_SERVICE_SIGNAL_LOOP_H_

#include <csignal>
#include <functional>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/config/config.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/server.h"

namespace coppice {

// The daemon under systemd. Without a service manager all of it does nothing.
//
// sd_notify(3) over NOTIFY_SOCKET, which stays in the environment: the daemon starts no children
// that could speak for it. Thread-safe.
class ServiceManager final {
 public:
  // Reads the environment.
  ServiceManager();

  bool is_there() const { return is_there_; }
  // How often it must hear KeepAlive; infinite: it does not wait for it (WatchdogSec= unset).
  absl::Duration watchdog() const { return watchdog_; }

  // The sockets stand; also ends Reloading.
  void Ready(const std::string& status) const;
  void Reloading() const;
  void Stopping() const;
  // For `systemctl status`. Of several lines one is made: whoever gives a node its description must
  // not speak to the service manager.
  void Status(const std::string& status) const;
  void KeepAlive() const;

 private:
  void Send(const std::string& state) const;

  bool is_there_ = false;
  absl::Duration watchdog_ = absl::InfiniteDuration();
};

// The configuration in force, and how a file that was edited takes its place while the daemon runs:
// read and checked as a whole first, then every key that may change is put in force, all of them or
// none. Keys that may not are named, each time until the daemon is started again.
//
//   read --mistake--> config.refused, nothing changed
//     |good
//   store takes the rules' entries --fails--> config.refused, nothing changed
//     |                                        (all that follows cannot fail)
//   manager, administrators, log level --> config.reloaded

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

// Tells that the daemon is ready; returns the signal that is to stop it, after a reload under way
// has ended. `signals` are blocked in every thread: SIGHUP, and those that stop. `own_address`:
// where the daemon can ask itself whether it answers; empty: nowhere.
int RunSignalLoop(const sigset_t& signals, const std::string& own_address, Manager* manager,
                  Reloader* reloader, const ServiceManager* service);

}  // namespace coppice

#endif  // COPPICE_DAEMON_SERVICE_SIGNAL_LOOP_H_
