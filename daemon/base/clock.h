// Time as a seam: leases, sweeps and first-seen stamps ask a Clock, so that tests turn it by hand.
#ifndef COPPICE_DAEMON_BASE_CLOCK_H_
#define COPPICE_DAEMON_BASE_CLOCK_H_

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace coppice {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall-clock time, for stamps that people read. May step.
  virtual absl::Time Now() const = 0;
  // Time since an arbitrary start, for leases and timeouts. Never steps back.
  virtual absl::Duration Monotonic() const = 0;
};

class MachineClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
  absl::Duration Monotonic() const override {
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
};

// Never destroyed.
inline const Clock& SystemClock() {
  static const MachineClock* const clock = new MachineClock;
  return *clock;
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_CLOCK_H_
