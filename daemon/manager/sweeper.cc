#include "daemon/manager/sweeper.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace coppice {
namespace {

constexpr absl::Duration kLastRetry = absl::Seconds(60);
constexpr std::array<int, 4> kSettlingSeconds = {1, 2, 4, 5};
constexpr absl::Duration kMaxSettling = absl::Seconds(60);
// A subnet manager may still change the routes around a cable that none of them had crossed.
constexpr absl::Duration kLateLook = absl::Seconds(20);
constexpr std::array<int, 4> kFlappingSeconds = {1, 2, 4, 5};
constexpr absl::Duration kQuiet = absl::Seconds(10);
constexpr absl::Duration kMaxPause = absl::Milliseconds(250);

absl::Duration SecondsAt(const std::array<int, 4>& seconds, int position) {
  return absl::Seconds(seconds[std::min<size_t>(position, seconds.size() - 1)]);
}

// Of a step that is due, under another period.
absl::Duration Sooner(absl::Duration due, absl::Duration now, absl::Duration period) {
  return period == absl::InfiniteDuration() ? period : std::min(due, now + period);
}

// As if the steps took no time, but with a pause if they take nearly all of it.
absl::Duration NextOf(absl::Duration began, absl::Duration now, absl::Duration period) {
  return std::max(began + period, now + period / 4);
}

absl::Duration SteadyNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

std::chrono::steady_clock::time_point SteadyTime(absl::Duration time, absl::Duration now) {
  return std::chrono::steady_clock::now() +
         absl::ToChronoNanoseconds(std::clamp(time - now, absl::ZeroDuration(), kMaxWait));
}

SweepNumbers& NumbersOf(SweepStanding& standing, SweepKind kind) {
  if (kind == SweepKind::kFull) return standing.full;
  return kind == SweepKind::kLight ? standing.light : standing.counters;
}

}  // namespace

absl::Duration Schedule::Retry::Take() {
  const absl::Duration taken = next;
  next = std::min(2 * next, kLastRetry);
  return taken;
}

Schedule::Step Schedule::Next() const {
  Step next{SweepKind::kFull, std::min(full_due_, triggered_due_)};
  if (!has_fabric_) return next;
  if (light_.due < next.due) next = {SweepKind::kLight, light_.due};
  if (counters_.due < next.due) next = {SweepKind::kCounters, counters_.due};
  return next;
}

void Schedule::EndedFull(absl::Duration began, absl::Duration now,
                         const FullSweepOutcome& outcome) {
  last_full_ = now;
  const bool was_triggered = triggered_due_ != absl::InfiniteDuration();
  triggered_due_ = absl::InfiniteDuration();
  if (!outcome.is_ok) {
    full_due_ = now + std::min(periods_.full, full_retry_.Take());
    return;
  }
  if (!has_fabric_) {
    has_fabric_ = true;
    counters_.due = now + std::min(periods_.counters, absl::Seconds(1));
    if (periods_.counters == absl::InfiniteDuration()) counters_.due = periods_.counters;
  }
  // It has seen more than a light one would, but maybe at its begin: who was cut then waits for
  // that period, and not for the sweep as well.
  if (periods_.light < absl::InfiniteDuration()) {
    const absl::Duration pause = std::min(periods_.light / 4, kMaxPause);
    light_.due = std::max(began + periods_.light, now + pause);
  } else {
    light_.due = periods_.light;
  }
  full_due_ = now + periods_.full;
  Settle(now, outcome, was_triggered);
  if (outcome.is_complete && outcome.is_repaired) {
    full_retry_ = Retry();
  } else {
    full_due_ = std::min(full_due_, now + full_retry_.Take());
  }
  full_due_ = std::min(full_due_, now + outcome.patience);
}

void Schedule::Settle(absl::Duration now, const FullSweepOutcome& outcome, bool was_triggered) {
  // What a light sweep saw is counted already.
  const bool changed_again = outcome.fabric_changed && is_settling_;
  if (changed_again && !was_triggered) CountTrigger(now);
  const bool begins = outcome.tables_changed && !is_settling_;
  if (outcome.fabric_changed || outcome.are_tables_kept || begins) {
    is_settling_ = true;
    settle_until_ = now + kMaxSettling;
    reads_ = 0;
  }
  if (outcome.is_settled && !outcome.are_tables_kept) {
    // Where there are tables at all.
    if (is_settling_ && reads_ > 0) full_due_ = std::min(full_due_, now + kLateLook);
    is_settling_ = false;
  } else if (is_settling_ && now < settle_until_) {
    absl::Duration pause = SecondsAt(kSettlingSeconds, reads_++);
    // A link that is back when it is looked at flaps as well.
    if (changed_again || outcome.are_tables_kept) {
      pause = std::max(pause, SecondsAt(kFlappingSeconds, std::max(triggers_ - 1, 0)));
    }
    full_due_ = std::min(full_due_, now + pause);
  } else {
    is_settling_ = false;
  }
}

bool Schedule::EndedLesser(Lesser& lesser, absl::Duration period, absl::Duration began,
                           absl::Duration now, bool is_ok) {
  if (period == absl::InfiniteDuration()) return false;
  lesser.due = is_ok ? NextOf(began, now, period) : now + std::max(period, lesser.retry.Take());
  if (is_ok) lesser.retry = Retry();
  return is_ok;
}

void Schedule::EndedLight(absl::Duration began, absl::Duration now, bool is_ok, bool has_changed) {
  if (!EndedLesser(light_, periods_.light, began, now, is_ok)) return;
  need_retry_ = Retry();
  if (has_changed && triggered_due_ == absl::InfiniteDuration()) triggered_due_ = TriggerAt(now);
}

void Schedule::EndedCounters(absl::Duration began, absl::Duration now, bool is_ok) {
  EndedLesser(counters_, periods_.counters, began, now, is_ok);
}

absl::Duration Schedule::TriggerAt(absl::Duration now) {
  CountTrigger(now);
  if (triggers_ == 1) return now;
  return std::max(now, last_full_ + SecondsAt(kFlappingSeconds, triggers_ - 2));
}

void Schedule::CountTrigger(absl::Duration now) {
  if (now - last_trigger_ > kQuiet) triggers_ = 0;
  last_trigger_ = now;
  ++triggers_;
}

void Schedule::SwitchOff(SweepKind kind) {
  const bool is_light = kind == SweepKind::kLight;
  Lesser& lesser = is_light ? light_ : counters_;
  lesser.exists = false;
  lesser.due = (is_light ? periods_.light : periods_.counters) = absl::InfiniteDuration();
}

void Schedule::NeedFull(absl::Duration now) {
  full_due_ = std::min(full_due_, now + need_retry_.Take());
}

void Schedule::WantFullSoon(absl::Duration now) {
  full_due_ = std::min(full_due_, now + full_retry_.Take());
}

void Schedule::SetPeriods(const SweepPeriods& periods, absl::Duration now) {
  periods_ = periods;
  if (!light_.exists) periods_.light = absl::InfiniteDuration();
  if (!counters_.exists) periods_.counters = absl::InfiniteDuration();
  full_due_ = std::min(full_due_, now + periods_.full);
  if (!has_fabric_) return;
  light_.due = Sooner(light_.due, now, periods_.light);
  counters_.due = Sooner(counters_.due, now, periods_.counters);
}

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
      next.kind == SweepKind::kFull ? RunFull(lock) : RunOther(lock, next.kind);
    } else {
      changed_.wait_until(lock, SteadyTime(next.due, now));
    }
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
  Note(lock, SweepKind::kFull, status, sweep.mads, now - began);
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
  Note(lock, kind, sweep.status, sweep.mads, now - began);
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

void Sweeper::Note(Lock& lock, SweepKind kind, const absl::Status& status, const SweepMads& mads,
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
  if (was_well == status.ok()) return;
  lock.unlock();
  duties_.tell(kind, status);
  lock.lock();
}

}  // namespace coppice
