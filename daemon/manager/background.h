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
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/time/time.h"

namespace coppice {

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
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

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

  explicit Background(Duties duties);
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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_BACKGROUND_H_
