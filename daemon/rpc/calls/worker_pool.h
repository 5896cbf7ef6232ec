// Threads for the calls that take long (a sweep, a tree of ten thousand members): gRPC's callback
// threads are few and serve every other call, so none of them may be held for milliseconds.
//
//   caller A: a1 a2 a3 ...     --+
//   caller B: b1               --+--> a1 b1 a2 a3 ...: callers take turns, a caller's own in order
//
// Callers may be in groups (tenants). Then the next task is that of the group which has had least
// of the threads' time for its weight, and its callers take turns within that: start-time fair
// queueing (Goyal, Vin, Cheng 1996), charged by time that was spent, as nobody knows it before. A
// group that was idle has saved nothing, and a debt that it left is still its own.
//
// Of several threads one caller never has all: tasks may take seconds, and who comes next is not to
// wait for that.
#ifndef COPPICE_DAEMON_RPC_CALLS_WORKER_POOL_H_
#define COPPICE_DAEMON_RPC_CALLS_WORKER_POOL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"

namespace coppice {

// Thread-safe. Tasks of one caller start in the order of submission.
class WorkerPool final {
 public:
  using Task = absl::AnyInvocable<void()>;
  using Ticket = uint64_t;  // names a task that was submitted

  // `nice`: how much less of the processor they get than others, 0 to 19.
  explicit WorkerPool(int threads, int nice = 0) : WorkerPool(threads, nice, nullptr) {}
  struct Share {
    std::string group;
    int64_t weight = 1;  // at least 1
  };
  using ShareFor = std::function<Share(const std::string& caller)>;
  // Null: all are one group. `clock` outlives the pool.
  WorkerPool(int threads, int nice, ShareFor share_for, const Clock* clock = &SystemClock());
  // Runs everything that was submitted, then joins.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // For tasks whose number somebody else bounds, as that of open streams.
  void Submit(Task task, const std::string& caller = "");
  // UNAVAILABLE: `most` tasks of `caller` wait for a thread already, or as many as its share of
  // what all may have waiting, which is kCallers times as many. A caller that has none waiting is
  // never refused.
  absl::Status Room(size_t most, const std::string& caller) const;
  // Without such room the task is dropped.
  absl::StatusOr<Ticket> SubmitUnlessFull(Task task, size_t most, const std::string& caller = "");
  // Drops the task, with all that it holds, before it returns. False: a thread has begun it.
  bool Withdraw(Ticket ticket);
  // Tasks that no thread has begun.
  size_t waiting() const;
  // Whether any of them is another caller's.
  bool OthersWait(const std::string& caller) const;

  // So many times what one may have waiting all may. Nobody takes more than half of what is left.
  static constexpr size_t kCallers = 8;

 private:
  struct Waiting {
    Ticket ticket;
    Task task;
  };
  struct Group;
  struct Line {
    std::string caller;
    Group* group = nullptr;
    std::deque<Waiting> tasks;  // tickets ascend
    size_t running = 0;
    bool is_listed = false;  // in its group's turns
  };
  struct Group {
    int64_t weight = 1;
    double spent = 0;           // seconds of threads by weight, on a scale of all groups
    std::deque<Line*> turns;    // lines with tasks to begin, each once
    size_t lines = 0;           // that it has
    size_t running = 0;         // of its tasks
    absl::Duration begun = {};  // sum of when those began
    // With what runs now.
    double SpentBy(absl::Duration now) const;
  };

  Ticket Add(Task task, const std::string& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RoomNow(size_t most, const std::string& caller) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives the line a turn if a thread may begin its next task, and forgets it if it has none.
  void Settle(Line* line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Line* LineOf(const std::string& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // That has had least and has tasks to begin; there is one.
  Group* NextGroup(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work(int nice);

  const size_t most_running_;  // of one caller
  const ShareFor share_for_;
  const Clock* const clock_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<Line>> lines_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::unique_ptr<Group>> groups_ ABSL_GUARDED_BY(mutex_);
  double least_spent_ ABSL_GUARDED_BY(mutex_) = 0;  // of the group that had the last turn
  size_t listed_ ABSL_GUARDED_BY(mutex_) = 0;       // lines in turns of groups
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  Ticket last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CALLS_WORKER_POOL_H_
