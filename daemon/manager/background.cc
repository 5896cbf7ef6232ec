#include "daemon/manager/background.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace coppice {
namespace {

// How often the activity is written: rare beside grants, often enough to follow a job.
constexpr absl::Duration kFlushPeriod = absl::Seconds(10);
constexpr absl::Duration kLookPeriod = absl::Seconds(1);

using SteadyPoint = std::chrono::steady_clock::time_point;

absl::Duration Since(SteadyPoint begin) {
  return absl::FromChrono(std::chrono::steady_clock::now() - begin);
}

}  // namespace

Background::Background(Duties duties) : duties_(std::move(duties)) {}

void Background::Wake() {
  std::lock_guard lock(mu_);
  woken_ = true;
  changed_.notify_all();
}

bool Background::Sleep(absl::Duration wait) {
  const auto until = std::chrono::steady_clock::now() +
                     absl::ToChronoNanoseconds(std::max(wait, absl::ZeroDuration()));
  std::unique_lock lock(mu_);
  changed_.wait_until(lock, until, [&] { return thread_.stopping() || woken_; });
  woken_ = false;
  return !thread_.stopping();
}

void Background::LeaseLoop() {
  const SteadyPoint start = std::chrono::steady_clock::now();
  SteadyPoint began = start, looked = start, flushed = start;
  absl::Duration waited;  // as it meant to, since `began`
  for (;;) {
    const absl::Duration now = duties_.now();
    const absl::Duration late = Since(began) - waited;
    began = std::chrono::steady_clock::now();
    if (late >= kStall) duties_.stalled(late);
    const absl::Duration next = duties_.expire(now);
    if (Since(looked) >= kLookPeriod) {
      duties_.look();
      looked = std::chrono::steady_clock::now();
    }
    if (Since(flushed) >= kFlushPeriod) {
      duties_.flush();
      flushed = std::chrono::steady_clock::now();
    }
    waited = std::clamp(next, absl::Milliseconds(1), kLookPeriod);
    if (!Sleep(waited)) return;
  }
}

}  // namespace coppice
