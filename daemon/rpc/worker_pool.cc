#include "daemon/rpc/worker_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace coppice {

WorkerPool::WorkerPool(int threads, int nice) {
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
    turns_.push_back(line.get());
  }
  line->tasks.push_back({++last_ticket_, std::move(task)});
  ++waiting_;
  return last_ticket_;
}

void WorkerPool::Submit(Task task) {
  absl::MutexLock lock(&mutex_);
  Add(std::move(task), "");
}

std::optional<WorkerPool::Ticket> WorkerPool::SubmitUnlessFull(Task task, size_t most,
                                                               const std::string& caller) {
  absl::MutexLock lock(&mutex_);
  const auto line = lines_.find(caller);
  if (line != lines_.end() && line->second->tasks.size() >= most) return std::nullopt;
  if (waiting_ >= kCallers * most) return std::nullopt;
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
    if (tasks.empty()) {
      std::erase(turns_, line.get());
      lines_.erase(caller);
    }
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
  return turns_.size() > (lines_.contains(caller) ? 1 : 0);
}

void WorkerPool::Work(int nice) {
  // Of a thread, as Linux has it, and of those that it starts. Lowering it is always allowed.
  if (nice > 0) setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice);
  while (true) {
    Task task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(
          +[](WorkerPool* pool) { return pool->stopping_ || !pool->turns_.empty(); }, this));
      if (turns_.empty()) return;
      Line* const line = turns_.front();
      turns_.pop_front();
      task = std::move(line->tasks.front().task);
      line->tasks.pop_front();
      --waiting_;
      if (line->tasks.empty()) {
        lines_.erase(std::string(line->caller));
      } else {
        turns_.push_back(line);
      }
    }
    task();
  }
}

}  // namespace coppice
