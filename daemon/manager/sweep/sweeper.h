// The one thread that reads the subnet: full sweeps, light ones and counters, by the timetable of
// schedule.h, and repairs between them. What a step does is handed in; here is who runs when.
//
//   Sweep() ----wants--->+                        +---- ends -----> every Sweep() that waits
//                        v                        |
//   timetable ------> next step: full | light | counters | repair
//
// Invariants: one step at a time, whoever runs it; a request waits for at most the one step under
// way and is then next; woken repairs go before the timetable, but not two in a row before a step
// that is due; before Start and after Stop, whoever asks runs the sweep itself. A kind of
// sweep that fails is told once, and once more when it is well again.
#ifndef COPPICE_DAEMON_MANAGER_SWEEP_SWEEPER_H_
#define COPPICE_DAEMON_MANAGER_SWEEP_SWEEPER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/manager/background.h"
#include "daemon/manager/fabric_view.h"
#include "daemon/manager/sweep/schedule.h"

namespace coppice {

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
    std::function<void(SweepKind, const absl::Status&)> fails;  // and did not before
    std::function<void(SweepKind)> recovers;
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
  void RunStep(Lock& lock, SweepKind kind);
  // Notes how a step of that kind ended; true: that is to be told.
  bool Note(SweepKind kind, const absl::Status& status, const SweepMads& mads,
            absl::Duration elapsed);
  void Tell(SweepKind kind, const absl::Status& status);

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

#endif  // COPPICE_DAEMON_MANAGER_SWEEP_SWEEPER_H_
