// When what is read from the subnet: the timetable of the one thread that owns the port.
//
//   full       at the start, by period, and early: after a change until routes settle, where trees
//              are left broken or nodes did not answer, when patience with these ends, after a
//              failure, when a light sweep sees a change
//   light      by period, counters by period; both only once a full sweep has gone well
//
//   changed --1 s--> read --2 s--> read --4 s--> read --5 s--> ... until one is as the one before
//      ^               |                                       and no table leads over what is gone
//      |               |as before                                          (60 s at most)
//      +---changed-----+--> settled --20 s--> one more look --> period
//
// Of changes that light sweeps see in quick succession the first is read at once, the next 1 s
// after the full sweep before it, then 2, 4 and 5 s: a link that flaps keeps the thread busy for a
// fraction of the time only. 10 s without a change end that. Changes that come while routes settle
// count as well, whoever sees them.
//
// Whoever is due the longest goes first, so that nothing starves. Values only: no thread, no clock,
// no subnet; times are of any one monotonic clock.
#ifndef COPPICE_DAEMON_MANAGER_SWEEP_SCHEDULE_H_
#define COPPICE_DAEMON_MANAGER_SWEEP_SCHEDULE_H_

#include <cstdint>

#include "absl/time/time.h"

namespace coppice {

enum class SweepKind : uint8_t { kFull, kLight, kCounters };

// Infinite: never.
struct SweepPeriods {
  absl::Duration full = absl::InfiniteDuration();
  absl::Duration light = absl::InfiniteDuration();
  absl::Duration counters = absl::InfiniteDuration();
};

// What a full sweep found, as far as the next one depends on it.
struct FullSweepOutcome {
  bool is_ok = false;
  bool fabric_changed = false;  // something other than the tables
  bool tables_changed = false;
  bool is_settled = false;       // neither, and no table leads over what is gone
  bool is_complete = true;       // no node was silent
  bool is_repaired = true;       // no tree is left broken
  bool are_tables_kept = false;  // not read: they are still to be
  // Until something that may only be hidden is given up, by a sweep after that.
  absl::Duration patience = absl::InfiniteDuration();
};

class Schedule {
 public:
  struct Step {
    SweepKind kind = SweepKind::kFull;
    absl::Duration due;  // infinite: nothing is to be done
  };

  // A full sweep is due at once.
  Schedule(const SweepPeriods& periods, absl::Duration now);

  // What is to be done next, and when; after the due time, it is still that, or what became due
  // before it.
  Step Next() const;

  // The ends of steps, which began at `began`.
  void EndedFull(absl::Duration began, absl::Duration now, const FullSweepOutcome& outcome);
  void EndedLight(absl::Duration began, absl::Duration now, bool is_ok, bool has_changed);
  void EndedCounters(absl::Duration began, absl::Duration now, bool is_ok);
  // The source does not have it, and never will.
  void SwitchOff(SweepKind kind);
  // A light sweep or the counters could not be read, by what the last full sweep saw or at all:
  // only a full one finds another way. To be called before the end of the step.
  void NeedFull(absl::Duration now);
  // A tree could not be mended: look at the fabric again soon.
  void WantFullSoon(absl::Duration now);
  // New periods; whatever is due later than they allow comes earlier.
  void SetPeriods(const SweepPeriods& periods, absl::Duration now);

  const SweepPeriods& periods() const { return periods_; }
  // A light sweep saw a change, and no full sweep has ended since.
  bool is_triggered() const { return triggered_due_ != absl::InfiniteDuration(); }

 private:
  // Grows from failure to failure.
  struct Retry {
    absl::Duration next = absl::Seconds(1);
    absl::Duration Take();
  };

  void Settle(absl::Duration now, const FullSweepOutcome& outcome, bool was_triggered);
  absl::Duration TriggerAt(absl::Duration now);
  void CountTrigger(absl::Duration now);

  SweepPeriods periods_;
  bool has_light_ = true, has_counters_ = true;  // the source, as far as is known
  absl::Duration full_due_, light_due_, counters_due_;
  absl::Duration triggered_due_ = absl::InfiniteDuration();  // a light sweep saw a change
  Retry full_retry_, light_retry_, counter_retry_, need_retry_;
  bool has_fabric_ = false;  // a full sweep went well

  bool is_settling_ = false;
  absl::Duration settle_until_;
  int reads_ = 0;  // since the change

  int triggers_ = 0;  // in quick succession
  absl::Duration last_trigger_ = -absl::InfiniteDuration();
  absl::Duration last_full_ = -absl::InfiniteDuration();
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_SWEEP_SCHEDULE_H_
