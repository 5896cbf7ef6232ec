#include "daemon/rpc/calls/worker_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "daemon/base/caller_bounds.h"
#include "daemon/base/status_macros.h"

namespace coppice {

WorkerPool::WorkerPool(int threads, int nice)
    : most_running_(threads > 1 ? static_cast<size_t>(threads) - 1 : 1) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this, nice] { Work(nice); });
}

WorkerPool::~WorkerPool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

WorkerPool::Ticket WorkerPool::Add(Task task, const std::string& caller) {
  std::unique_ptr<Line>& line = lines_[caller];
  if (line == nullptr) {
    line = std::make_unique<Line>();
    line->caller = caller;
  }
  line->tasks.push_back({++last_ticket_, std::move(task)});
  ++waiting_;
  Settle(line.get());
  return last_ticket_;
}

void WorkerPool::Settle(Line* line) {
  if (line->tasks.empty()) {
    if (line->is_listed) std::erase(turns_, line);
    line->is_listed = false;
    if (line->running == 0) lines_.erase(std::string(line->caller));
    return;
  }
  const bool may_run = line->running < most_running_ || line->caller.empty();
  if (line->is_listed || !may_run) return;
  line->is_listed = true;
  turns_.push_back(line);
}

void WorkerPool::Submit(Task task, const std::string& caller) {
  absl::MutexLock lock(&mutex_);
  Add(std::move(task), caller);
}

absl::Status WorkerPool::RoomNow(size_t most, const std::string& caller) const {
  const auto line = lines_.find(caller);
  const size_t own = line == lines_.end() ? 0 : line->second->tasks.size();
  const int64_t share = ShareOf(static_cast<int64_t>(most), static_cast<int64_t>(kCallers * most),
                                static_cast<int64_t>(waiting_ - own));
  if (own == 0 || static_cast<int64_t>(own) < share) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("of your calls ", own, " wait for a thread already",
                                             own == waiting_ ? "" : ", and others' wait, too",
                                             "; call again when some have ended"));
}

absl::Status WorkerPool::Room(size_t most, const std::string& caller) const {
  absl::MutexLock lock(&mutex_);
  return RoomNow(most, caller);
}

absl::StatusOr<WorkerPool::Ticket> WorkerPool::SubmitUnlessFull(Task task, size_t most,
                                                                const std::string& caller) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(RoomNow(most, caller));
  return Add(std::move(task), caller);
}

bool WorkerPool::Withdraw(Ticket ticket) {
  Task task;  // goes without the lock: what it holds may be large, or ask us something
  absl::MutexLock lock(&mutex_);
  for (const auto& [caller, line] : lines_) {
    std::deque<Waiting>& tasks = line->tasks;
    const auto found = std::find_if(tasks.begin(), tasks.end(),
                                    [&](const Waiting& w) { return w.ticket == ticket; });
    if (found == tasks.end()) continue;
    task = std::move(found->task);
    tasks.erase(found);
    --waiting_;
    Settle(line.get());
    return true;
  }
  return false;
}

size_t WorkerPool::waiting() const {
  absl::MutexLock lock(&mutex_);
  return waiting_;
}

bool WorkerPool::OthersWait(const std::string& caller) const {
  absl::MutexLock lock(&mutex_);
  const auto own = lines_.find(caller);
  return waiting_ > (own == lines_.end() ? 0 : own->second->tasks.size());
}

void WorkerPool::Work(int nice) {
  // Of a thread, as Linux has it, and of those that it starts. Lowering it is always allowed.
  if (nice > 0) setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice);
  while (true) {
    Task task;
    Line* line = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      // Also what is left at the end, as soon as it may begin.
      mutex_.Await(absl::Condition(
          +[](WorkerPool* pool) {
            return !pool->turns_.empty() || (pool->stopping_ && pool->waiting_ == 0);
          },
          this));
      if (turns_.empty()) return;
      line = turns_.front();
      turns_.pop_front();
      line->is_listed = false;
      ++line->running;
      task = std::move(line->tasks.front().task);
      line->tasks.pop_front();
      --waiting_;
      Settle(line);
    }
    task();
    task = nullptr;  // with all that it holds, before the caller's next
    absl::MutexLock lock(&mutex_);
    --line->running;
    Settle(line);
  }
}

}  // namespace coppice
