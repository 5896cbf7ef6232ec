// A clock that stands still until a test turns it.
#ifndef COPPICE_TESTS_SUPPORT_MANUAL_CLOCK_H_
#define COPPICE_TESTS_SUPPORT_MANUAL_CLOCK_H_

#include <mutex>

#include "absl/time/time.h"
#include "daemon/base/clock.h"

namespace coppice {

// Thread-safe. Starts at 2026-01-01 00:00:00 UTC, monotonic 1000 s.
class ManualClock final : public Clock {
 public:
  absl::Time Now() const override {
    std::lock_guard lock(mu_);
    return now_;
  }
  absl::Duration Monotonic() const override {
    std::lock_guard lock(mu_);
    return monotonic_;
  }
  // Turns both by `step`, which is not negative.
  void Advance(absl::Duration step) {
    std::lock_guard lock(mu_);
    now_ += step;
    monotonic_ += step;
  }
  // Steps the wall clock alone, as an administrator or NTP does.
  void StepWallClock(absl::Duration step) {
    std::lock_guard lock(mu_);
    now_ += step;
  }

 private:
  mutable std::mutex mu_;
  absl::Time now_ = absl::FromUnixSeconds(1767225600);
  absl::Duration monotonic_ = absl::Seconds(1000);
};

}  // namespace coppice

#endif  // COPPICE_TESTS_SUPPORT_MANUAL_CLOCK_H_
