#include "daemon/rpc/calls/worker_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "daemon/base/caller_bounds.h"
#include "daemon/base/status_macros.h"

namespace coppice {

WorkerPool::WorkerPool(int threads, int nice, ShareFor share_for, const Clock* clock)
    : most_running_(threads > 1 ? static_cast<size_t>(threads) - 1 : 1),
      share_for_(std::move(share_for)),
      clock_(clock) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this, nice] { Work(nice); });
}

WorkerPool::~WorkerPool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

double WorkerPool::Group::SpentBy(absl::Duration now) const {
  const absl::Duration runs = now * static_cast<int64_t>(running) - begun;
  return spent + absl::ToDoubleSeconds(runs) / static_cast<double>(weight);
}

WorkerPool::Line* WorkerPool::LineOf(const std::string& caller) {
  std::unique_ptr<Line>& line = lines_[caller];
  if (line != nullptr) return line.get();
  line = std::make_unique<Line>();
  line->caller = caller;
  Share share = share_for_ && !caller.empty() ? share_for_(caller) : Share();
  std::unique_ptr<Group>& group = groups_[share.group];
  if (group == nullptr) group = std::make_unique<Group>();
  if (group->lines++ == 0) group->spent = std::max(group->spent, least_spent_);
  group->weight = share.weight;
  line->group = group.get();
  return line.get();
}

WorkerPool::Group* WorkerPool::NextGroup(absl::Duration now) {
  constexpr size_t kManyGroups = 1024;
  if (groups_.size() > kManyGroups) {
    absl::erase_if(groups_, [&](const auto& named) {
      return named.second->lines == 0 && named.second->spent <= least_spent_;
    });
  }
  Group* next = nullptr;
  std::pair<double, Ticket> least;  // of equals, who came first
  for (const auto& [name, group] : groups_) {
    if (group->turns.empty()) continue;
    const std::pair of{group->SpentBy(now), group->turns.front()->tasks.front().ticket};
    if (next != nullptr && of >= least) continue;
    next = group.get();
    least = of;
  }
  least_spent_ = std::max(least_spent_, least.first);
  return next;
}

WorkerPool::Ticket WorkerPool::Add(Task task, const std::string& caller) {
  Line* const line = LineOf(caller);
  line->tasks.push_back({++last_ticket_, std::move(task)});
  ++waiting_;
  Settle(line);
  return last_ticket_;
}

void WorkerPool::Settle(Line* line) {
  if (line->tasks.empty()) {
    if (line->is_listed) {
      std::erase(line->group->turns, line);
      --listed_;
    }
    line->is_listed = false;
    if (line->running > 0) return;
    --line->group->lines;
    lines_.erase(std::string(line->caller));
    return;
  }
  const bool may_run = line->running < most_running_ || line->caller.empty();
  if (line->is_listed || !may_run) return;
  line->is_listed = true;
  line->group->turns.push_back(line);
  ++listed_;
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
    absl::Duration begun;
    {
      absl::MutexLock lock(&mutex_);
      // Also what is left at the end, as soon as it may begin.
      mutex_.Await(absl::Condition(
          +[](WorkerPool* pool) {
            return pool->listed_ > 0 || (pool->stopping_ && pool->waiting_ == 0);
          },
          this));
      if (listed_ == 0) return;
      begun = clock_->Monotonic();
      Group& group = *NextGroup(begun);
      line = group.turns.front();
      group.turns.pop_front();
      --listed_;
      line->is_listed = false;
      ++line->running;
      ++group.running;
      group.begun += begun;
      task = std::move(line->tasks.front().task);
      line->tasks.pop_front();
      --waiting_;
      Settle(line);
    }
    task();
    task = nullptr;  // with all that it holds, before the caller's next
    absl::MutexLock lock(&mutex_);
    Group& group = *line->group;
    group.spent +=
        absl::ToDoubleSeconds(clock_->Monotonic() - begun) / static_cast<double>(group.weight);
    --group.running;
    group.begun -= begun;
    --line->running;
    Settle(line);
  }
}

}  // namespace coppice
