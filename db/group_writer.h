// One thread that makes mutations durable in groups: while one group is being committed the next
// one gathers, so that many callers share one flush of the disk.
//
//   waiting   a b c | d e | f g h
//   long            |     |          X1 X2 X3, Y1 Y2
//   groups  [a b c X1] [d e X2] [f g h X3] [Y1] ...
//
// A mutation may take several steps: it lines up with its like, and each group has one step of the
// first of them. So nobody waits for more than a step.
//
// Knows nothing of how a group is applied. std::mutex rather than absl::Mutex: ThreadSanitizer sees
// through the former only, since the system's Abseil is not instrumented.
#ifndef COPPICE_DB_GROUP_WRITER_H_
#define COPPICE_DB_GROUP_WRITER_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "db/store.h"

namespace coppice {

struct PendingMutation {
  Mutation mutation;
  Store::Done done;
  size_t steps = 1;     // that it takes, one in a group
  size_t step = 0;      // the one that this group has; those before it are durable
  absl::Status status;  // set by the commit function
};

class GroupWriter {
 public:
  // Applies a group in order and sets every status; runs on the writer's thread. OK: the group was
  // committed; else why it was not.
  using Commit = std::function<absl::Status(absl::Span<PendingMutation>)>;

  explicit GroupWriter(Commit commit);
  // Commits and answers everything that waits, then ends the thread.
  ~GroupWriter();

  // Never blocks on a commit. `steps`: at least 1; it is answered after the last, or the first that
  // fails. Thread-safe.
  void Submit(Mutation mutation, Store::Done done, size_t steps = 1);

  // Without the size of the database, which only the store knows. Thread-safe.
  StoreStatistics Statistics() const;

 private:
  // Bounds how long the first of a group waits for the last.
  static constexpr size_t kMaxGroup = 1024;

  void Run();
  // Has `batch` end with the next step of a long one, if there is any.
  void AddStep(std::vector<PendingMutation>& batch);
  void CommitAndCount(absl::Span<PendingMutation> group);

  const Commit commit_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<PendingMutation> queue_;  // guarded by mutex_
  bool stopping_ = false;               // guarded by mutex_
  StoreStatistics statistics_;          // guarded by mutex_
  std::deque<PendingMutation> long_;    // the writer's thread's: those of several steps
  std::thread thread_;
};

}  // namespace coppice

#endif  // COPPICE_DB_GROUP_WRITER_H_
