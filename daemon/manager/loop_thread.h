// A thread that runs a loop from Start to Stop, however often it is started and stopped: what the
// manager's threads have in common. The loop, its lock and its condition are the owner's.
//
//   idle --Start--> running --Stop: stopping, notified--> joined, idle
//
// The loop must end soon after stopping() has become true and the condition was notified.
#ifndef COPPICE_DAEMON_MANAGER_LOOP_THREAD_H_
#define COPPICE_DAEMON_MANAGER_LOOP_THREAD_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace coppice {

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LOOP_THREAD_H_
