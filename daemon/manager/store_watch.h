// Notices that the store refuses writes, as on a full disk or when its file is gone, and that it
// takes them again: in the log at once, and as events as soon as an event can be kept. While it
// refuses, an event is tried now and then: on a daemon that nobody asks for anything the first
// write that goes well must not wait for a user.
#ifndef COPPICE_DAEMON_MANAGER_STORE_WATCH_H_
#define COPPICE_DAEMON_MANAGER_STORE_WATCH_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/manager/event_log.h"
#include "daemon/manager/store_calls.h"

namespace coppice {

// Not thread-safe.
class StoreWatch {
 public:
  // How often an event is tried while the store refuses.
  static constexpr absl::Duration kRetry = absl::Seconds(10);

  StoreWatch(StoreCalls* calls, EventLog* events, const Clock* clock)
      : calls_(calls), events_(events), clock_(clock) {}

  // To be called every second or so. Waits for nothing.
  void Look();

 private:
  StoreCalls* const calls_;
  EventLog* const events_;
  const Clock* const clock_;
  std::string fault_;  // empty: it takes writes
  absl::Duration since_, tried_;
  uint64_t refused_before_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_STORE_WATCH_H_
