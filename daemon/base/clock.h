// Time as a seam: leases, sweeps and first-seen stamps ask a Clock, so that tests turn it by hand.
#ifndef COPPICE_DAEMON_BASE_CLOCK_H_
#define COPPICE_DAEMON_BASE_CLOCK_H_

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

// The machine's clocks. Never destroyed.
const Clock& SystemClock();

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_CLOCK_H_
