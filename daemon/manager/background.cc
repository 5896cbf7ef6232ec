#include "daemon/manager/background.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace coppice {
namespace {

// A failed sweep is tried again after these, doubling from the first to the last.
constexpr absl::Duration kFirstRetry = absl::Seconds(1);
constexpr absl::Duration kLastRetry = absl::Seconds(60);
// How often the activity is written: rare beside grants, often enough to follow a job.
constexpr absl::Duration kFlushPeriod = absl::Seconds(10);
// Longer waits are cut, so that no sum of times overflows.
constexpr absl::Duration kLongestWait = absl::Hours(24);

}  // namespace

Background::Background(Duties duties, absl::Duration sweep_period)
    : duties_(std::move(duties)), sweep_period_(sweep_period) {}

void Background::Start() {
  std::lock_guard lock(mu_);
  if (running_) return;
  running_ = true;
  stopping_ = false;
  sweeper_ = std::thread([this] { SweepLoop(); });
  leaser_ = std::thread([this] { LeaseLoop(); });
}

void Background::Stop() {
  std::thread sweeper, leaser;
  {
    std::lock_guard lock(mu_);
    if (!running_) return;
    running_ = false;
    stopping_ = true;
    sweeper = std::move(sweeper_);
    leaser = std::move(leaser_);
    changed_.notify_all();
  }
  sweeper.join();
  leaser.join();
}

void Background::Wake() {
  std::lock_guard lock(mu_);
  leases_woken_ = true;
  changed_.notify_all();
}

bool Background::Sleep(std::unique_lock<std::mutex>& lock, absl::Duration wait, bool& flag,
                       bool* was_set) {
  const auto until =
      std::chrono::steady_clock::now() +
      absl::ToChronoNanoseconds(std::clamp(wait, absl::ZeroDuration(), kLongestWait));
  changed_.wait_until(lock, until, [&] { return stopping_ || flag; });
  if (was_set != nullptr) *was_set = flag;
  flag = false;
  return !stopping_;
}

void Background::WakeRepair() {
  std::lock_guard lock(mu_);
  repair_woken_ = true;
  changed_.notify_all();
}

void Background::SweepLoop() {
  absl::Duration retry = kFirstRetry;
  for (;;) {
    absl::Duration wait = sweep_period_;
    if (duties_.sweep()) {
      retry = kFirstRetry;
    } else {
      // Also with an infinite period: a daemon that starts before its subnet finds it.
      wait = std::min(sweep_period_, retry);
      retry = std::min(2 * retry, kLastRetry);
    }
    if (!RepairUntilSweep(wait, retry)) return;
  }
}

bool Background::RepairUntilSweep(absl::Duration wait, absl::Duration retry) {
  auto swept = std::chrono::steady_clock::now();
  for (;;) {
    const absl::Duration since = absl::FromChrono(std::chrono::steady_clock::now() - swept);
    bool is_woken = false;
    {
      std::unique_lock lock(mu_);
      if (!Sleep(lock, wait - since, repair_woken_, &is_woken)) return false;
    }
    if (is_woken) {
      // What cannot be mended now is looked at again after a sweep that comes early.
      if (!duties_.repair()) wait = std::min(wait, since + retry);
    } else if (wait != absl::InfiniteDuration()) {
      return true;
    }
  }
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
    std::unique_lock lock(mu_);
    if (!Sleep(lock, std::min(next, until_flush), leases_woken_)) return;
  }
}

}  // namespace coppice
