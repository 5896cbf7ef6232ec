// The daemon's own two threads: one sweeps at once and by period, one ends expired leases and
// writes the activity. They are only timers; what they do is handed in.
#ifndef COPPICE_DAEMON_MANAGER_BACKGROUND_H_
#define COPPICE_DAEMON_MANAGER_BACKGROUND_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/time/time.h"

namespace coppice {

// Thread-safe.
class Background {
 public:
  struct Duties {
    std::function<bool()> sweep;             // true: it went well
    std::function<bool()> repair;            // between sweeps, when woken; true: it went well
    std::function<absl::Duration()> expire;  // returns the time until it is due again
    std::function<void()> flush;
  };

  Background(Duties duties, absl::Duration sweep_period);
  ~Background() { Stop(); }

  // Both idempotent. Stop joins; it waits for a sweep under way.
  void Start();
  void Stop();
  // `expire` may be due earlier than it said; there is something to repair. Never block for long.
  void Wake();
  void WakeRepair();

 private:
  void SweepLoop();
  // Repairs whenever woken, until `wait` is over. False: Stop.
  bool RepairUntilSweep(absl::Duration wait, absl::Duration retry);
  void LeaseLoop();
  // Until `wait` has passed, the flag is set, or Stop; true unless Stop. Clears the flag;
  // `was_set`, unless null, tells whether it was.
  bool Sleep(std::unique_lock<std::mutex>& lock, absl::Duration wait, bool& flag,
             bool* was_set = nullptr);

  const Duties duties_;
  const absl::Duration sweep_period_;

  std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_.
  bool running_ = false;
  bool stopping_ = false;
  bool leases_woken_ = false;
  bool repair_woken_ = false;
  std::thread sweeper_, leaser_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_BACKGROUND_H_
