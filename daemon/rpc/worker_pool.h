// Threads for the calls that take long (a sweep, a tree of ten thousand members): gRPC's callback
// threads are few and serve every other call, so none of them may be held for milliseconds.
#ifndef COPPICE_DAEMON_RPC_WORKER_POOL_H_
#define COPPICE_DAEMON_RPC_WORKER_POOL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace coppice {

// Thread-safe. Tasks start in the order of submission.
class WorkerPool final {
 public:
  using Task = absl::AnyInvocable<void()>;
  using Ticket = uint64_t;  // names a task that was submitted

  // `nice`: how much less of the processor they get than others, 0 to 19.
  explicit WorkerPool(int threads, int nice = 0);
  // Runs everything that was submitted, then joins.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // For tasks whose number somebody else bounds, as that of open streams.
  void Submit(Task task);
  // None, and the task is dropped: `most` others wait for a thread already.
  std::optional<Ticket> SubmitUnlessFull(Task task, size_t most);
  // Drops the task, with all that it holds, before it returns. False: a thread has begun it.
  bool Withdraw(Ticket ticket);
  // Tasks that no thread has begun.
  size_t waiting() const;

 private:
  struct Waiting {
    Ticket ticket;
    Task task;
  };

  void Work(int nice);

  mutable absl::Mutex mutex_;
  std::deque<Waiting> tasks_ ABSL_GUARDED_BY(mutex_);  // tickets ascend
  Ticket last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_WORKER_POOL_H_
