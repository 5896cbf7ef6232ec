#include "daemon/manager/background.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace coppice {
namespace {

// How often the activity is written: rare beside grants, often enough to follow a job.
constexpr absl::Duration kFlushPeriod = absl::Seconds(10);
// Longer waits are cut, so that no sum of times overflows.
constexpr absl::Duration kLongestWait = absl::Hours(24);

}  // namespace

Background::Background(Duties duties) : duties_(std::move(duties)) {}

void Background::Wake() {
  std::lock_guard lock(mu_);
  woken_ = true;
  changed_.notify_all();
}

bool Background::Sleep(absl::Duration wait) {
  const auto until =
      std::chrono::steady_clock::now() +
      absl::ToChronoNanoseconds(std::clamp(wait, absl::ZeroDuration(), kLongestWait));
  std::unique_lock lock(mu_);
  changed_.wait_until(lock, until, [&] { return thread_.stopping() || woken_; });
  woken_ = false;
  return !thread_.stopping();
}

void Background::LeaseLoop() {
  auto flushed = std::chrono::steady_clock::now();
  for (;;) {
    const absl::Duration next = duties_.expire();
    const absl::Duration since_flush = absl::FromChrono(std::chrono::steady_clock::now() - flushed);
    if (since_flush >= kFlushPeriod) {
      duties_.flush();
      flushed = std::chrono::steady_clock::now();
    }
    const absl::Duration until_flush = std::max(kFlushPeriod - since_flush, absl::Milliseconds(1));
    if (!Sleep(std::min(next, until_flush))) return;
  }
}

}  // namespace coppice
