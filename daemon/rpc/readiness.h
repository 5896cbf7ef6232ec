// Turns the server's health to SERVING when the manager has its first fabric. The manager tells
// nobody that it has one; this asks it, and stops asking once it has.
#ifndef COPPICE_DAEMON_RPC_READINESS_H_
#define COPPICE_DAEMON_RPC_READINESS_H_

#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/synchronization/notification.h"
#include "daemon/manager/manager.h"

namespace coppice {

class Readiness final {
 public:
  // Calls `ready` once, on a thread of its own, within 20 ms of the manager's first fabric.
  Readiness(const Manager* manager, absl::AnyInvocable<void()> ready);
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  // Afterwards `ready` is not called any more. Idempotent.
  void Stop();

 private:
  void Watch(const Manager* manager, absl::AnyInvocable<void()> ready);

  absl::Notification stop_;
  std::thread thread_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_READINESS_H_
