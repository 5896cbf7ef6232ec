// The ranks of jobs as SQL: the writer's part and the reader's. They are rows of their own, slices
// of kRanksOfSlice ranks (one of any size from before schema 13), so that a job of a million ranks
// is written in steps that others need not wait for, and its end does not write them again.
#ifndef COPPICE_DB_SQLITE_RANKS_H_
#define COPPICE_DB_SQLITE_RANKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/strong_id.h"
#include "db/sqlite_connection.h"
#include "db/store.h"

namespace coppice {

// 300 KiB of text, written in less than a millisecond.
inline constexpr size_t kRanksOfSlice = 16'384;
inline size_t SlicesOf(size_t ranks) {
  return std::max<size_t>(1, (ranks + kRanksOfSlice - 1) / kRanksOfSlice);
}

// Belongs to the writer's thread; works within its transaction.
class RankWriter {
 public:
  explicit RankWriter(Connection& connection) : connection_(connection) {}
  // The connection must hold the newest schema. Drops slices whose job never came.
  absl::Status Prepare();

  // The one of SlicesOf the job's ranks; those of a job that is not there yet count for nothing.
  absl::Status Put(const JobRecord& job, size_t slice);
  absl::Status Drop(JobId job);
  // Unless the job is there.
  absl::Status DropOrphans(JobId job);

 private:
  Connection& connection_;
  Statement insert_, drop_, drop_orphans_;
};

// As SqliteReader, part of which it is.
class RankReader {
 public:
  explicit RankReader(Connection& connection) : connection_(connection) {}
  absl::Status Prepare();
  // DATA_LOSS: they are not `count` ranks as the writer makes them.
  absl::StatusOr<std::vector<Guid>> Of(JobId job, size_t count);

 private:
  Connection& connection_;
  Statement list_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_RANKS_H_
