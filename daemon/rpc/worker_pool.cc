#include "daemon/rpc/worker_pool.h"

#include <sys/resource.h>
#include <unistd.h>

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
  tasks_.push_back(std::move(task));
}

bool WorkerPool::SubmitUnlessFull(Task task, size_t most) {
  absl::MutexLock lock(&mutex_);
  if (tasks_.size() >= most) return false;
  tasks_.push_back(std::move(task));
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
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace coppice
