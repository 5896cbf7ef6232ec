#include "agents/node/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <limits>

namespace coppice {
namespace {

constexpr int kEventsAtOnce = 64;

void Control(int epoll, int operation, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(epoll, operation, fd, &event);
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create() {
  OwnedFd epoll(epoll_create1(EPOLL_CLOEXEC));
  OwnedFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (epoll.get() < 0 || wake.get() < 0) {
    return absl::ResourceExhaustedError("no file descriptor is left; raise LimitNOFILE");
  }
  Control(epoll.get(), EPOLL_CTL_ADD, wake.get(), EPOLLIN);
  std::unique_ptr<EventLoop> loop(new EventLoop(std::move(epoll), std::move(wake)));
  return loop;
}

void EventLoop::Watch(int fd, uint32_t events, OnReady on_ready) {
  watched_[fd] = std::make_shared<OnReady>(std::move(on_ready));
  Control(epoll_.get(), EPOLL_CTL_ADD, fd, events);
}

void EventLoop::Change(int fd, uint32_t events) {
  Control(epoll_.get(), EPOLL_CTL_MOD, fd, events);
}

void EventLoop::Forget(int fd) {
  watched_.erase(fd);
  Control(epoll_.get(), EPOLL_CTL_DEL, fd, 0);
}

EventLoop::Timer EventLoop::After(Duration wait, std::function<void()> work) {
  const Timer timer(std::chrono::steady_clock::now() + wait, ++last_timer_);
  timers_.emplace(timer, std::move(work));
  return timer;
}

// Wakes under the lock: once the work has run, whoever posted it is done with the loop.
void EventLoop::Post(std::function<void()> work) {
  const std::lock_guard<std::mutex> lock(mu_);
  posted_.push_back(std::move(work));
  if (posted_.size() > 1) return;  // woken already
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
}

int EventLoop::UntilNextTimer() const {
  if (timers_.empty()) return -1;
  const auto left =
      std::chrono::ceil<Duration>(timers_.begin()->first.first - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, std::numeric_limits<int>::max()));
}

void EventLoop::RunTimers() {
  const Timer now(std::chrono::steady_clock::now(), last_timer_);
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const std::function<void()> work = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    work();
  }
}

void EventLoop::RunPosted() {
  uint64_t count = 0;
  (void)!read(wake_.get(), &count, sizeof count);
  std::vector<std::function<void()>> work;
  {
    const std::lock_guard<std::mutex> lock(mu_);
    work.swap(posted_);
  }
  for (const auto& piece : work) piece();
}

void EventLoop::RunOnce() {
  epoll_event events[kEventsAtOnce];
  const int count = epoll_wait(epoll_.get(), events, kEventsAtOnce, UntilNextTimer());
  for (int i = 0; i < count; ++i) {
    const int fd = events[i].data.fd;
    if (fd == wake_.get()) {
      RunPosted();
      continue;
    }
    // What ran before may have forgotten it; what runs now may forget itself.
    const auto found = watched_.find(fd);
    if (found == watched_.end()) continue;
    const std::shared_ptr<OnReady> on_ready = found->second;
    (*on_ready)(events[i].events);
  }
  RunTimers();
}

void EventLoop::Run() {
  is_stopped_ = false;
  while (!is_stopped_) RunOnce();
}

void EventLoop::RunUntil(const std::function<bool()>& is_done, Duration most) {
  bool is_over = false;
  const Timer limit = After(most, [&is_over] { is_over = true; });
  while (!is_over && !is_done()) RunOnce();
  Cancel(limit);
}

LoopTurns::~LoopTurns() { loop_->Cancel(next_turn_); }

void LoopTurns::Add(std::function<bool()> step) {
  works_.push_back(std::move(step));
  TakeTurn();
}

void LoopTurns::TakeTurn() {
  if (is_stepping_) return;  // a step added more
  is_stepping_ = true;
  while (steps_left_ > 0 && !works_.empty()) {
    --steps_left_;
    std::function<bool()> work = std::move(works_.front());
    works_.pop_front();
    if (work()) works_.push_back(std::move(work));
  }
  is_stepping_ = false;
  if (is_timed_ || steps_left_ == kStepsOfTurn) return;
  is_timed_ = true;
  next_turn_ = loop_->After(kPause, [this] {
    is_timed_ = false;
    steps_left_ = kStepsOfTurn;
    TakeTurn();
  });
}

}  // namespace coppice
