// The threads that mind what time brings: one the end of leases, the state of the store, and its
// own delays; another what may take long (events of what was granted, old rows that go), so that
// nobody's lease waits for it. When they wake is here, what they do is handed in.
//
// A daemon that did not run hears no keepalives. It finds out by being later than it meant to, and
// says so before it ends any lease: by a time that was read before, so that a stall between the two
// ends none, either. What it works itself is no stall.
#ifndef COPPICE_DAEMON_MANAGER_BACKGROUND_H_
#define COPPICE_DAEMON_MANAGER_BACKGROUND_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/manager/event_log.h"
#include "daemon/manager/store_calls.h"

namespace coppice {

// Longer waits are cut, so that no sum of times overflows.
inline constexpr absl::Duration kMaxWait = absl::Hours(24);

// A thread that runs a loop from Start to Stop, however often it is started and stopped: what the
// manager's threads have in common. The loop, its lock and its condition are the owner's.
//
//   idle --Start--> running --Stop: stopping, notified--> joined, idle
//
// The loop must end soon after stopping() has become true and the condition was notified.
// Thread-safe. Must be stopped before what the loop uses goes.
class LoopThread {
 public:
  // Both are the owner's, which outlives this; the loop waits with them.
  LoopThread(std::mutex& mu, std::condition_variable& changed) : mu_(mu), changed_(changed) {}
  ~LoopThread() { Stop(); }

  // Both idempotent, and not with the lock held. Stop joins.
  void Start(std::function<void()> loop) {
    std::lock_guard lock(mu_);
    if (running_) return;
    running_ = true;
    stopping_ = false;
    thread_ = std::thread(std::move(loop));
  }
  void Stop() {
    std::thread thread;
    {
      std::lock_guard lock(mu_);
      if (!running_) return;
      running_ = false;
      stopping_ = true;
      thread = std::move(thread_);
      changed_.notify_all();
    }
    thread.join();
  }

  // With the lock held. Between Start and Stop.
  bool running() const { return running_; }
  // With the lock held. Stop was called.
  bool stopping() const { return stopping_; }

 private:
  std::mutex& mu_;
  std::condition_variable& changed_;
  // Guarded by mu_.
  bool running_ = false, stopping_ = false;
  std::thread thread_;
};

// Thread-safe.
class Background {
 public:
  // Later than that is a stall. A quarter of the shortest lease; a busy machine delays by less.
  static constexpr absl::Duration kStall = absl::Milliseconds(250);

  struct Duties {
    std::function<absl::Duration()> now;
    // It did not run for so long, at least kStall: before the next `expire`.
    std::function<void(absl::Duration)> stalled;
    // As of that time, which `now` gave; returns the time until it is due again.
    std::function<absl::Duration(absl::Duration)> expire;
    std::function<void()> look;   // about every second
    std::function<void()> flush;  // every so often, on the other thread
    absl::Duration flush_every = absl::Seconds(10);
  };

  explicit Background(Duties duties) : duties_(std::move(duties)) {}
  ~Background() { Stop(); }

  // Both idempotent. Stop joins.
  void Start() {
    leases_.Start([this] { LeaseLoop(); });
    flushes_.Start([this] { FlushLoop(); });
  }
  void Stop() {
    leases_.Stop();
    flushes_.Stop();
  }
  // `expire` may be due earlier than it said. Never blocks for long.
  void Wake();

 private:
  void LeaseLoop();
  void FlushLoop();
  // Until `wait` has passed, Wake, or Stop; true unless Stop.
  bool SleepOfLeases(absl::Duration wait);

  const Duties duties_;

  std::mutex mu_;
  std::condition_variable changed_;
  // Guarded by mu_.
  bool woken_ = false;

  LoopThread leases_{mu_, changed_}, flushes_{mu_, changed_};
};

// What the manager sees to from time to time: old rows that go, a store that refuses, other
// daemons.

// Drops old events, and jobs and placements that ended long ago, a few in each mutation, as many as
// there is to drop. Age counts only when the wall clock has gone along with the monotonic one for
// an hour; number counts always. Of jobs each owner has a share (README.md). One thread.
class Pruning {
 public:
  static constexpr absl::Duration kEvenFor = absl::Hours(1);

  struct Limits {
    int64_t keep = 0;    // the newest so many; of jobs, who has the most of them loses first
    absl::Duration age;  // and not older than this
  };

  // Both outlive this; the calls also whatever Run has begun.
  Pruning(StoreCalls* calls, const Clock* clock) : calls_(calls), clock_(clock) {}

  // Drops what is beyond the limits; returns when the first mutations are on their way. To be
  // called every few seconds.
  // `ended` holds for jobs and for placements, each.
  void Run(const Limits& events, const Limits& ended);

 private:
  // Whether the wall clock has gone evenly for kEvenFor.
  bool IsEven(absl::Time wall, absl::Duration monotonic);
  void PruneOldJobs(absl::Time before);
  // Of owners with more jobs than a level those that ended first, so that `keep` are left.
  void PruneSurplusOfJobs(int64_t keep);
  // Mutations that the number of events or of placements calls for; at least 1.
  int RoundsOfEvents(int64_t keep);
  int RoundsOfPlacements(int64_t keep, absl::Time before);

  StoreCalls* const calls_;
  const Clock* const clock_;
  bool has_start_ = false;
  absl::Time wall_start_;
  absl::Duration start_;  // monotonic, at wall_start_
};

// Notices that the store refuses writes, as on a full disk or when its file is gone, and that it
// takes them again: in the log at once, and as events as soon as an event can be kept. While it
// refuses, an event is tried now and then: the first write that goes well must not wait for a user.
// Not thread-safe.
class StoreWatch {
 public:
  // How often an event is tried while the store refuses.
  static constexpr absl::Duration kRetry = absl::Seconds(10);

  StoreWatch(StoreCalls* calls, EventLog* events, const Clock* clock)
      : calls_(calls), events_(events), clock_(clock) {}

  // To be called every second or so. Waits for nothing.
  void Look();

 private:
  StoreCalls* const calls_;
  EventLog* const events_;
  const Clock* const clock_;
  std::string fault_;  // empty: it takes writes
  absl::Duration since_, tried_;
  uint64_t refused_before_ = 0;
};

// Signs that another daemon, with another database, grants trees on this subnet. Each counts only
// its own grants, so the same entries are given away twice and nobody notices. Daemons only read
// the subnet and leave nothing there that another could find; but agents serve one after the other,
// and say whose they were. Thread-safe.
class OtherDaemons {
 public:
  // How long a sign is one: a database that was replaced is heard of until every agent has come
  // over.
  static constexpr absl::Duration kKept = absl::Hours(1);

  // `own`: Store::DatabaseId.
  OtherDaemons(uint64_t own, EventLog* events, const Clock* clock)
      : own_(own), events_(events), clock_(clock) {}

  // `from`, "the agent of host n7", was served by the daemon with that database last; 0: by none,
  // or it does not know. The first sign of each is an event.
  void Hear(uint64_t database, absl::string_view from);
  // In words, one for each database; empty: none is known.
  std::vector<std::string> Signs() const;

 private:
  struct Sign {
    std::string words;
    absl::Duration heard;
  };
  const uint64_t own_;
  EventLog* const events_;
  const Clock* const clock_;
  mutable std::mutex mu_;
  std::map<uint64_t, Sign> signs_;  // guarded by mu_
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_BACKGROUND_H_
