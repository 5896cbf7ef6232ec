// The machine's clocks, but for a wall clock that a test steps, as an administrator or NTP does.
#ifndef COPPICE_TESTS_SUPPORT_STEPPED_CLOCK_H_
#define COPPICE_TESTS_SUPPORT_STEPPED_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "daemon/base/clock.h"

namespace coppice {

// Thread-safe.
class SteppedClock final : public Clock {
 public:
  absl::Time Now() const override { return SystemClock().Now() + absl::Nanoseconds(ahead_.load()); }
  absl::Duration Monotonic() const override { return SystemClock().Monotonic(); }
  void Step(absl::Duration step) { ahead_ += absl::ToInt64Nanoseconds(step); }

 private:
  std::atomic<int64_t> ahead_{0};
};

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_STEPPED_CLOCK_H_
