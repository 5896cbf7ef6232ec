#include "daemon/manager/sweep/sweeper.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

// Longer waits are cut, so that no sum of times overflows.
constexpr absl::Duration kLongestWait = absl::Hours(24);

absl::Duration SteadyNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

std::chrono::steady_clock::time_point SteadyTime(absl::Duration time, absl::Duration now) {
  return std::chrono::steady_clock::now() +
         absl::ToChronoNanoseconds(std::clamp(time - now, absl::ZeroDuration(), kLongestWait));
}

SweepNumbers& NumbersOf(SweepStanding& standing, SweepKind kind) {
  if (kind == SweepKind::kFull) return standing.full;
  return kind == SweepKind::kLight ? standing.light : standing.counters;
}

}  // namespace

std::string ObjectOf(SweepKind kind) {
  if (kind == SweepKind::kFull) return "sweep:full";
  return kind == SweepKind::kLight ? "sweep:light" : "sweep:counters";
}

Sweeper::Sweeper(Duties duties, const Clock* clock, const SweepPeriods& periods)
    : duties_(std::move(duties)), clock_(clock), schedule_(periods, SteadyNow()) {}

void Sweeper::WakeRepair() {
  std::lock_guard lock(mu_);
  repair_woken_ = true;
  changed_.notify_all();
}

void Sweeper::SetPeriods(const SweepPeriods& periods) {
  std::lock_guard lock(mu_);
  schedule_.SetPeriods(periods, SteadyNow());
  changed_.notify_all();
}

SweepStanding Sweeper::standing() const {
  std::lock_guard lock(mu_);
  SweepStanding standing = standing_;
  standing.full.period = schedule_.periods().full;
  standing.light.period = schedule_.periods().light;
  standing.counters.period = schedule_.periods().counters;
  return standing;
}

absl::StatusOr<Sweeper::View> Sweeper::Sweep() {
  Lock lock(mu_);
  const uint64_t seen = full_ended_;
  while (full_ended_ == seen) {
    if (!thread_.running() && !busy_) {
      RunFull(lock);
      break;
    }
    wanted_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return full_ended_ != seen || (!thread_.running() && !busy_); });
  }
  return last_full_;
}

void Sweeper::Loop() {
  Lock lock(mu_);
  while (!thread_.stopping()) {
    if (busy_) {  // by one who began before Start
      changed_.wait(lock);
      continue;
    }
    if (wanted_) {
      RunFull(lock);
      continue;
    }
    const absl::Duration now = SteadyNow();
    const Schedule::Step next = schedule_.Next();
    const bool is_due = next.due <= now;
    if (repair_woken_ && !(has_repaired_ && is_due)) {
      RunRepair(lock);
    } else if (is_due) {
      RunStep(lock, next.kind);
    } else {
      changed_.wait_until(lock, SteadyTime(next.due, now));
    }
  }
}

void Sweeper::RunStep(Lock& lock, SweepKind kind) {
  if (kind == SweepKind::kFull) {
    RunFull(lock);
  } else {
    RunOther(lock, kind);
  }
}

void Sweeper::RunFull(Lock& lock) {
  busy_ = true;
  repair_woken_ = has_repaired_ = false;                       // it mends everything
  const bool in_haste = schedule_.is_triggered() && !wanted_;  // who asks wants all of it
  const absl::Duration light_period = schedule_.periods().light;
  lock.unlock();
  const absl::Duration began = SteadyNow();
  FullSweep sweep = duties_.full(in_haste, light_period);
  lock.lock();
  const absl::Duration now = SteadyNow();
  schedule_.EndedFull(began, now, sweep.outcome);
  if (sweep.view.ok()) standing_.routes_settled = (*sweep.view)->routes_settled;
  const absl::Status status = sweep.view.status();
  last_full_ = std::move(sweep.view);
  ++full_ended_;
  wanted_ = false;
  busy_ = false;
  changed_.notify_all();
  if (Note(SweepKind::kFull, status, sweep.mads, now - began)) {
    lock.unlock();
    Tell(SweepKind::kFull, status);
    lock.lock();
  }
}

void Sweeper::RunOther(Lock& lock, SweepKind kind) {
  busy_ = true;
  has_repaired_ = false;
  const absl::Duration light_period = schedule_.periods().light;
  lock.unlock();
  const absl::Duration began = SteadyNow();
  const bool is_light = kind == SweepKind::kLight;
  const OtherSweep sweep = is_light ? duties_.light() : duties_.counters(light_period);
  lock.lock();
  busy_ = false;
  changed_.notify_all();
  const absl::Duration now = SteadyNow();
  if (absl::IsUnimplemented(sweep.status)) return schedule_.SwitchOff(kind);
  if (sweep.needs_full) schedule_.NeedFull(now);
  if (is_light) {
    schedule_.EndedLight(began, now, sweep.status.ok(), sweep.has_changed);
  } else {
    schedule_.EndedCounters(began, now, sweep.status.ok());
  }
  if (Note(kind, sweep.status, sweep.mads, now - began)) {
    lock.unlock();
    Tell(kind, sweep.status);
    lock.lock();
  }
}

void Sweeper::RunRepair(Lock& lock) {
  busy_ = true;
  repair_woken_ = false;
  has_repaired_ = true;
  lock.unlock();
  const bool is_well = duties_.repair();
  lock.lock();
  busy_ = false;
  changed_.notify_all();
  // What cannot be mended now is looked at again after a sweep that comes early.
  if (!is_well) schedule_.WantFullSoon(SteadyNow());
}

bool Sweeper::Note(SweepKind kind, const absl::Status& status, const SweepMads& mads,
                   absl::Duration elapsed) {
  SweepNumbers& numbers = NumbersOf(standing_, kind);
  const bool was_well = numbers.last_error.empty();
  ++numbers.count;
  if (status.ok()) {
    numbers.last_time = clock_->Now();
    numbers.last_duration = elapsed;
    numbers.last_error.clear();
  } else {
    ++numbers.failed;
    numbers.last_error = status.ToString();
  }
  standing_.mads_sent += mads.sent;
  standing_.mads_resent += mads.resent;
  standing_.mads_timed_out += mads.timed_out;
  return was_well != status.ok();
}

void Sweeper::Tell(SweepKind kind, const absl::Status& status) {
  if (status.ok()) {
    duties_.recovers(kind);
  } else {
    duties_.fails(kind, status);
  }
}

}  // namespace coppice
