// What the daemon's main thread does once everything runs: waits for signals, has SIGHUP reload on
// a thread of its own, and tells the service manager how it is.
//
// A reload waits for a sweep under way, for the store and for the file system. The service manager
// hears signs of life meanwhile, and they come at their time however often SIGHUP comes; several
// that come during a reload are answered by one more.
#ifndef COPPICE_DAEMON_SERVICE_SIGNAL_LOOP_H_
#define COPPICE_DAEMON_SERVICE_SIGNAL_LOOP_H_

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <string>

#include "daemon/manager/manager.h"
#include "daemon/service/reload.h"
#include "daemon/service/systemd.h"

namespace coppice {

class SignalLoop final {
 public:
  // `signals` are blocked in every thread: SIGHUP, and those that stop. `own_address`: where the
  // daemon can ask itself whether it answers; empty: nowhere. All outlive this.
  SignalLoop(const sigset_t& signals, std::string own_address, Manager* manager, Reloader* reloader,
             const ServiceManager* service)
      : signals_(signals),
        own_address_(std::move(own_address)),
        manager_(manager),
        reloader_(reloader),
        service_(service) {}

  // Tells that the daemon is ready; returns the signal that is to stop it, after a reload under way
  // has ended. Once.
  int Run();

 private:
  // Until a signal to stop; returns it.
  int Listen();
  // The next signal; 0 after `wait` without one.
  int Next(absl::Duration wait) const;
  void ReloadWhenAsked();
  // The status line and, if the daemon answers, the watchdog's sign of life.
  void Pulse();
  std::string StatusLine() const;

  const sigset_t signals_;
  const std::string own_address_;
  Manager* const manager_;
  Reloader* const reloader_;
  const ServiceManager* const service_;

  std::mutex mu_;
  std::condition_variable asked_;
  // Guarded by mu_.
  bool is_asked_ = false;  // SIGHUP came, and no reload has begun since
  bool stopping_ = false;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_SERVICE_SIGNAL_LOOP_H_
