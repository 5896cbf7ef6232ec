// The agent's one thread: sockets that are ready, timers, and work that other threads hand in.
// Whatever belongs to the loop needs no lock; gRPC's threads reach it by Post alone.
#ifndef COPPICE_AGENTS_NODE_EVENT_LOOP_H_
#define COPPICE_AGENTS_NODE_EVENT_LOOP_H_

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace coppice {

// A file descriptor that is closed with its holder.
class OwnedFd final {
 public:
  explicit OwnedFd(int fd = -1) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd() { Close(); }

  int get() const { return fd_; }  // -1: none
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

class EventLoop final {
 public:
  using Duration = std::chrono::milliseconds;
  using Timer = std::pair<std::chrono::steady_clock::time_point, uint64_t>;
  using OnReady = std::function<void(uint32_t events)>;

  // RESOURCE_EXHAUSTED: no descriptor is left.
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create();

  // The three below: `fd` is the caller's; Forget it before it is closed. `events` as epoll(7) has
  // them; errors and hang-ups are always told.
  void Watch(int fd, uint32_t events, OnReady on_ready);
  void Change(int fd, uint32_t events);
  void Forget(int fd);

  // Once, after `wait`. To cancel what has run, or Timer(), does nothing.
  Timer After(Duration wait, std::function<void()> work);
  void Cancel(const Timer& timer) { timers_.erase(timer); }

  // Thread-safe: runs `work` on the loop, in the order of the calls.
  void Post(std::function<void()> work);

  // Until Stop.
  void Run();
  void Stop() { is_stopped_ = true; }
  // Until `is_done`, which is asked whenever something has run, or for so long.
  void RunUntil(const std::function<bool()>& is_done, Duration most);

 private:
  EventLoop(OwnedFd epoll, OwnedFd wake) : epoll_(std::move(epoll)), wake_(std::move(wake)) {}

  void RunOnce();
  int UntilNextTimer() const;
  void RunTimers();
  void RunPosted();

  const OwnedFd epoll_;
  const OwnedFd wake_;  // eventfd
  bool is_stopped_ = false;
  std::unordered_map<int, std::shared_ptr<OnReady>> watched_;
  uint64_t last_timer_ = 0;
  std::map<Timer, std::function<void()>> timers_;
  std::mutex mu_;
  std::vector<std::function<void()>> posted_;  // guarded by mu_
};

// Long work on the loop in short steps: so many in one turn, then a pause for whatever else there
// is.
//
//   | steps, at most kStepsOfTurn |     pause     | steps |     pause     | ...
//
// Works take their steps by turns: one step of each, and again. Belongs to the loop, which outlives
// it. What is not done when it goes is dropped.
class LoopTurns final {
 public:
  // A step is a look at one process, some 50 us: a turn takes a fifth of the loop's time.
  static constexpr size_t kStepsOfTurn = 100;
  static constexpr std::chrono::milliseconds kPause{20};

  explicit LoopTurns(EventLoop* loop) : loop_(loop) {}
  ~LoopTurns();
  LoopTurns(const LoopTurns&) = delete;

  // Calls `step` until it answers false; begins at once if the turn has steps left.
  void Add(std::function<bool()> step);

 private:
  void TakeTurn();

  EventLoop* const loop_;
  std::deque<std::function<bool()>> works_;
  size_t steps_left_ = kStepsOfTurn;
  bool is_stepping_ = false;
  bool is_timed_ = false;
  EventLoop::Timer next_turn_;
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_EVENT_LOOP_H_
