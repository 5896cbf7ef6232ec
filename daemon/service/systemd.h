// The daemon under systemd: what it tells the service manager, and how it finds out that its log is
// the journal. Without a service manager all of it does nothing.
#ifndef COPPICE_DAEMON_SERVICE_SYSTEMD_H_
#define COPPICE_DAEMON_SERVICE_SYSTEMD_H_

#include <string>

#include "absl/time/time.h"

namespace coppice {

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

// Whether stderr is connected to the journal (systemd.exec(5), JOURNAL_STREAM).
bool StderrIsJournal();

}  // namespace coppice

#endif  // COPPICE_DAEMON_SERVICE_SYSTEMD_H_
