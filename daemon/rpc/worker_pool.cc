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

void WorkerPool::Submit(Task task) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back({++last_ticket_, std::move(task)});
}

std::optional<WorkerPool::Ticket> WorkerPool::SubmitUnlessFull(Task task, size_t most) {
  absl::MutexLock lock(&mutex_);
  if (tasks_.size() >= most) return std::nullopt;
  tasks_.push_back({++last_ticket_, std::move(task)});
  return last_ticket_;
}

bool WorkerPool::Withdraw(Ticket ticket) {
  Task task;  // goes without the lock: what it holds may be large, or ask us something
  absl::MutexLock lock(&mutex_);
  const auto found = std::find_if(tasks_.begin(), tasks_.end(),
                                  [&](const Waiting& w) { return w.ticket == ticket; });
  if (found == tasks_.end()) return false;
  task = std::move(found->task);
  tasks_.erase(found);
  return true;
}

size_t WorkerPool::waiting() const {
  absl::MutexLock lock(&mutex_);
  return tasks_.size();
}

void WorkerPool::Work(int nice) {
  // Of a thread, as Linux has it, and of those that it starts. Lowering it is always allowed.
  if (nice > 0) setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice);
  while (true) {
    Task task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(
          +[](WorkerPool* pool) { return pool->stopping_ || !pool->tasks_.empty(); }, this));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front().task);
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace coppice
