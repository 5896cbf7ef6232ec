#include "daemon/manager/sweep/schedule.h"

#include <algorithm>
#include <array>

namespace coppice {
namespace {

constexpr absl::Duration kLastRetry = absl::Seconds(60);
constexpr std::array<int, 4> kSettlingSeconds = {1, 2, 4, 5};
constexpr absl::Duration kLongestSettling = absl::Seconds(60);
// A subnet manager may still change the routes around a cable that none of them had crossed.
constexpr absl::Duration kLateLook = absl::Seconds(20);
constexpr std::array<int, 4> kFlappingSeconds = {1, 2, 4, 5};
constexpr absl::Duration kQuiet = absl::Seconds(10);
constexpr absl::Duration kLongestPause = absl::Milliseconds(250);

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

}  // namespace

absl::Duration Schedule::Retry::Take() {
  const absl::Duration taken = next;
  next = std::min(2 * next, kLastRetry);
  return taken;
}

Schedule::Schedule(const SweepPeriods& periods, absl::Duration now)
    : periods_(periods),
      full_due_(now),
      light_due_(absl::InfiniteDuration()),
      counters_due_(absl::InfiniteDuration()) {}

Schedule::Step Schedule::Next() const {
  Step next{SweepKind::kFull, std::min(full_due_, triggered_due_)};
  if (!has_fabric_) return next;
  if (light_due_ < next.due) next = {SweepKind::kLight, light_due_};
  if (counters_due_ < next.due) next = {SweepKind::kCounters, counters_due_};
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
    counters_due_ = now + std::min(periods_.counters, absl::Seconds(1));
    if (periods_.counters == absl::InfiniteDuration()) counters_due_ = periods_.counters;
  }
  // It has seen more than a light one would, but maybe at its begin: who was cut then waits for
  // that period, and not for the sweep as well.
  if (periods_.light < absl::InfiniteDuration()) {
    const absl::Duration pause = std::min(periods_.light / 4, kLongestPause);
    light_due_ = std::max(began + periods_.light, now + pause);
  } else {
    light_due_ = periods_.light;
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
    settle_until_ = now + kLongestSettling;
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

void Schedule::EndedLight(absl::Duration began, absl::Duration now, bool is_ok, bool has_changed) {
  if (periods_.light == absl::InfiniteDuration()) return;
  if (!is_ok) {
    light_due_ = now + std::max(periods_.light, light_retry_.Take());
    return;
  }
  light_retry_ = need_retry_ = Retry();
  light_due_ = NextOf(began, now, periods_.light);
  if (has_changed && triggered_due_ == absl::InfiniteDuration()) triggered_due_ = TriggerAt(now);
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

void Schedule::EndedCounters(absl::Duration began, absl::Duration now, bool is_ok) {
  if (periods_.counters == absl::InfiniteDuration()) return;
  if (!is_ok) {
    counters_due_ = now + std::max(periods_.counters, counter_retry_.Take());
    return;
  }
  counter_retry_ = Retry();
  counters_due_ = NextOf(began, now, periods_.counters);
}

void Schedule::SwitchOff(SweepKind kind) {
  if (kind == SweepKind::kLight) {
    has_light_ = false;
    periods_.light = light_due_ = absl::InfiniteDuration();
  } else if (kind == SweepKind::kCounters) {
    has_counters_ = false;
    periods_.counters = counters_due_ = absl::InfiniteDuration();
  }
}

void Schedule::NeedFull(absl::Duration now) {
  full_due_ = std::min(full_due_, now + need_retry_.Take());
}

void Schedule::WantFullSoon(absl::Duration now) {
  full_due_ = std::min(full_due_, now + full_retry_.Take());
}

void Schedule::SetPeriods(const SweepPeriods& periods, absl::Duration now) {
  periods_ = periods;
  if (!has_light_) periods_.light = absl::InfiniteDuration();
  if (!has_counters_) periods_.counters = absl::InfiniteDuration();
  full_due_ = std::min(full_due_, now + periods_.full);
  if (!has_fabric_) return;
  light_due_ = Sooner(light_due_, now, periods_.light);
  counters_due_ = Sooner(counters_due_, now, periods_.counters);
}

}  // namespace coppice
