#include "daemon/manager/background.h"

#include <time.h>

#include <algorithm>
#include <chrono>

namespace coppice {
namespace {

constexpr absl::Duration kLookPeriod = absl::Seconds(1);

using SteadyPoint = std::chrono::steady_clock::time_point;

absl::Duration Since(SteadyPoint begin) {
  return absl::FromChrono(std::chrono::steady_clock::now() - begin);
}

SteadyPoint After(absl::Duration wait) {
  return std::chrono::steady_clock::now() +
         absl::ToChronoNanoseconds(std::max(wait, absl::ZeroDuration()));
}

// That this thread has worked, which a stopped one does not.
absl::Duration Worked() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

}  // namespace

Background::Background(Duties duties) : duties_(std::move(duties)) {}

void Background::Wake() {
  std::lock_guard lock(mu_);
  woken_ = true;
  changed_.notify_all();
}

bool Background::SleepOfLeases(absl::Duration wait) {
  const SteadyPoint until = After(wait);
  std::unique_lock lock(mu_);
  changed_.wait_until(lock, until, [&] { return leases_.stopping() || woken_; });
  woken_ = false;
  return !leases_.stopping();
}

void Background::LeaseLoop() {
  SteadyPoint began = std::chrono::steady_clock::now(), looked = began;
  absl::Duration worked = Worked();
  absl::Duration waited;  // as it meant to, since `began`
  for (;;) {
    const absl::Duration now = duties_.now();
    const absl::Duration late = Since(began) - waited - (Worked() - worked);
    began = std::chrono::steady_clock::now();
    worked = Worked();
    if (late >= kStall) duties_.stalled(late);
    const absl::Duration next = duties_.expire(now);
    if (Since(looked) >= kLookPeriod) {
      duties_.look();
      looked = std::chrono::steady_clock::now();
    }
    waited = std::clamp(next, absl::Milliseconds(1), kLookPeriod);
    if (!SleepOfLeases(waited)) return;
  }
}

void Background::FlushLoop() {
  for (;;) {
    const SteadyPoint until = After(duties_.flush_every);
    {
      std::unique_lock lock(mu_);
      if (changed_.wait_until(lock, until, [&] { return flushes_.stopping(); })) return;
    }
    duties_.flush();
  }
}

}  // namespace coppice
