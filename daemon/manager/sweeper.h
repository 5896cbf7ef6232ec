// The one thread that reads the subnet: full sweeps, light ones and counters, by a timetable, and
// repairs between them. What a step does is handed in; here is who runs when.
//
//   Sweep() ----wants--->+                        +---- ends -----> every Sweep() that waits
//                        v                        |
//   timetable ------> next step: full | light | counters | repair
//
// Invariants: one step at a time, whoever runs it; a request waits for at most the one step under
// way and is then next; woken repairs go before the timetable, but not two in a row before a step
// that is due; before Start and after Stop, whoever asks runs the sweep itself. A kind of
// sweep that fails is told once, and once more when it is well again.
#ifndef COPPICE_DAEMON_MANAGER_SWEEPER_H_
#define COPPICE_DAEMON_MANAGER_SWEEPER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/manager/background.h"
#include "daemon/manager/fabric_view.h"
#include "daemon/manager/options.h"

namespace coppice {

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

enum class SweepKind : uint8_t { kFull, kLight, kCounters };

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
  Schedule(const SweepPeriods& periods, absl::Duration now) : periods_(periods), full_due_(now) {}

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

  // Light sweeps, or counters.
  struct Lesser {
    absl::Duration due = absl::InfiniteDuration();
    Retry retry;
    bool exists = true;  // in the source, as far as is known
  };
  // False: it failed, or is not wanted any more.
  bool EndedLesser(Lesser& lesser, absl::Duration period, absl::Duration began, absl::Duration now,
                   bool is_ok);
  void Settle(absl::Duration now, const FullSweepOutcome& outcome, bool was_triggered);
  absl::Duration TriggerAt(absl::Duration now);
  void CountTrigger(absl::Duration now);

  SweepPeriods periods_;
  Lesser light_, counters_;
  absl::Duration full_due_;
  absl::Duration triggered_due_ = absl::InfiniteDuration();  // a light sweep saw a change
  Retry full_retry_, need_retry_;
  bool has_fabric_ = false;  // a full sweep went well

  bool is_settling_ = false;
  absl::Duration settle_until_;
  int reads_ = 0;  // since the change

  int triggers_ = 0;  // in quick succession
  absl::Duration last_trigger_ = -absl::InfiniteDuration();
  absl::Duration last_full_ = -absl::InfiniteDuration();
};

// "sweep:full", "sweep:light", "sweep:counters": the objects of events.
std::string ObjectOf(SweepKind kind);

// What one step sent; zero where the step does not say.
struct SweepMads {
  uint64_t sent = 0, resent = 0, timed_out = 0;
};

// Thread-safe.
class Sweeper {
 public:
  using View = std::shared_ptr<const FabricView>;
  struct FullSweep {
    absl::StatusOr<View> view;
    FullSweepOutcome outcome;
    SweepMads mads;
  };
  struct OtherSweep {
    absl::Status status;  // UNIMPLEMENTED: the source has none, it is not asked again
    bool has_changed = false;
    SweepMads mads;
    bool needs_full = false;  // only a full sweep can find a way to read again
  };
  struct Duties {
    // Publishes and mends. In haste: after a light sweep that saw a change. What takes long looks
    // in between as light sweeps do, before they would be late (infinite: not at all).
    std::function<FullSweep(bool in_haste, absl::Duration light_period)> full;
    std::function<OtherSweep()> light;  // takes lost links out, and mends
    std::function<OtherSweep(absl::Duration light_period)> counters;
    std::function<bool()> repair;  // when woken; false: something is left broken
    std::function<void(SweepKind, const absl::Status&)> tell;  // that fails now, or not any more
  };

  Sweeper(Duties duties, const Clock* clock, const SweepPeriods& periods);
  ~Sweeper() { Stop(); }

  // Both idempotent. Stop joins; it waits for the step under way.
  void Start() {
    thread_.Start([this] { Loop(); });
  }
  void Stop() { thread_.Stop(); }
  // Joins the full sweep under way, or asks for one and waits for it.
  absl::StatusOr<View> Sweep();
  // There is something to repair. Never blocks for long.
  void WakeRepair();
  // From the next step on.
  void SetPeriods(const SweepPeriods& periods);

  SweepStanding standing() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void Loop();
  // With `lock` held at begin and end, and not while the step runs.
  void RunFull(Lock& lock);
  void RunOther(Lock& lock, SweepKind kind);
  void RunRepair(Lock& lock);
  // Notes how a step of that kind ended, and tells it if that is new.
  void Note(Lock& lock, SweepKind kind, const absl::Status& status, const SweepMads& mads,
            absl::Duration elapsed);

  const Duties duties_;
  const Clock* const clock_;  // the wall clock; the timetable is by the steady one

  mutable std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_.
  Schedule schedule_;
  SweepStanding standing_;
  bool busy_ = false;  // a step is under way
  bool wanted_ = false;
  bool repair_woken_ = false;
  bool has_repaired_ = false;  // since the last step of another kind
  uint64_t full_ended_ = 0;
  absl::StatusOr<View> last_full_ = View();

  LoopThread thread_{mu_, changed_};
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_SWEEPER_H_
