// One thread that makes mutations durable in groups: while one group is being committed the next
// one gathers, so that many callers share one flush of the disk.
//
// Knows nothing of how a group is applied. std::mutex rather than absl::Mutex: ThreadSanitizer sees
// through the former only, since the system's Abseil is not instrumented.
#ifndef COPPICE_DB_GROUP_WRITER_H_
#define COPPICE_DB_GROUP_WRITER_H_

#include <condition_variable>
#include <cstddef>
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

  // Never blocks on a commit. Thread-safe.
  void Submit(Mutation mutation, Store::Done done);

  // Without the size of the database, which only the store knows. Thread-safe.
  StoreStatistics Statistics() const;

 private:
  // Bounds how long the first of a group waits for the last.
  static constexpr size_t kMaxGroup = 1024;

  void Run();
  void CommitAndCount(absl::Span<PendingMutation> group);

  const Commit commit_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<PendingMutation> queue_;  // guarded by mutex_
  bool stopping_ = false;               // guarded by mutex_
  StoreStatistics statistics_;          // guarded by mutex_
  std::thread thread_;
};

}  // namespace coppice

#endif  // COPPICE_DB_GROUP_WRITER_H_
