#include "daemon/rpc/worker_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace coppice {

WorkerPool::WorkerPool(int threads, int nice, int most_of_caller)
    : most_of_caller_(most_of_caller) {
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
  Update(*line);
  return last_ticket_;
}

void WorkerPool::Update(Line& line) {
  if (line.tasks.empty() && line.has_turn) std::erase(turns_, &line);
  line.has_turn = line.has_turn && !line.tasks.empty();
  if (line.tasks.empty() && line.running == 0) {
    lines_.erase(std::string(line.caller));
  } else if (!line.has_turn && !line.tasks.empty() && line.running < most_of_caller_) {
    turns_.push_back(&line);
    line.has_turn = true;
  }
}

void WorkerPool::Submit(Task task, const std::string& caller) {
  absl::MutexLock lock(&mutex_);
  Add(std::move(task), caller);
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
    Update(*line);
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
  return std::any_of(lines_.begin(), lines_.end(), [&](const auto& line) {
    return line.first != caller && !line.second->tasks.empty();
  });
}

void WorkerPool::Work(int nice) {
  // Of a thread, as Linux has it, and of those that it starts. Lowering it is always allowed.
  if (nice > 0) setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice);
  Line* line = nullptr;  // of the task that has just run
  while (true) {
    Task task;
    {
      absl::MutexLock lock(&mutex_);
      if (line != nullptr) {
        --line->running;
        Update(*line);
      }
      mutex_.Await(absl::Condition(
          +[](WorkerPool* pool) { return pool->stopping_ || !pool->turns_.empty(); }, this));
      if (turns_.empty()) return;
      line = turns_.front();
      turns_.pop_front();
      line->has_turn = false;
      task = std::move(line->tasks.front().task);
      line->tasks.pop_front();
      --waiting_;
      ++line->running;
      Update(*line);
    }
    task();
  }
}

}  // namespace coppice
