// Jobs and their ranks as SQL: the writer's part and the reader's.
//
// Ranks are rows of their own, slices of kRanksOfSlice ranks (one of any size from before schema
// 13), so that a job of a million ranks is written in steps that others need not wait for, and its
// end does not write them again. Without the job's own row, which comes with the last, its slices
// count for nothing.
#ifndef COPPICE_DB_SQLITE_JOBS_H_
#define COPPICE_DB_SQLITE_JOBS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "db/sqlite_connection.h"
#include "db/store.h"

namespace coppice {

// 300 KiB of text, written in less than a millisecond.
inline constexpr size_t kRanksOfSlice = 16'384;
inline size_t SlicesOf(size_t ranks) {
  return std::max<size_t>(1, (ranks + kRanksOfSlice - 1) / kRanksOfSlice);
}

// Of which ended jobs the lists of ranks are kept: those that ended last, within a bound of bytes
// for each owner and one for all, where whoever has the most loses first.
class KeptRanks {
 public:
  void Enter(const std::string& owner, absl::Time ended, JobId id, int64_t bytes);
  void Leave(const std::string& owner, absl::Time ended, JobId id, int64_t bytes);
  // The jobs whose lists go, out of here already. At most kMaxAtOnce older ones of the owner, then
  // the list that came last, if there is still no room: so the bound always holds for the owner.
  std::vector<JobId> TakeSurplus(const std::string& owner, const KeptRankBytes& limits);

 private:
  static constexpr size_t kMaxAtOnce = 64;
  using Row = std::tuple<absl::Time, JobId, int64_t>;
  struct Owner {
    std::set<Row> rows;
    int64_t bytes = 0;
  };
  using Owners = absl::flat_hash_map<std::string, Owner>;

  // To `most` bytes; below 0: by one row.
  void Shrink(Owners::iterator owner, int64_t most, std::vector<JobId>& gone);

  Owners owners_;
  int64_t all_ = 0;
};

// Belongs to the writer's thread; works within its transaction. Contracts as of the mutations.
class JobWriter {
 public:
  explicit JobWriter(SqliteConnection& connection);

  // The last step: the job's row, and the last slice of its ranks.
  absl::Status Apply(const PutJob& put);
  // A step before that: the slice of that number.
  absl::Status PutAhead(const JobRecord& job, size_t slice);
  // Slices were committed, and Put will never come.
  void Abandon(JobId job) { abandoned_.push_back(job); }
  // What abandoned jobs left; first of all in each transaction.
  absl::Status DropAbandoned();
  absl::Status Apply(const EndJob& end);
  absl::Status Apply(const PruneJobs& prune);

  // What became of the transaction.
  void Committed();
  void RolledBack();

 private:
  absl::Status PutSlice(const JobRecord& job, size_t slice);
  // Words for a constraint that `failure` reports; a storage failure stays as it is.
  absl::Status Explain(const JobRecord& job, absl::Status failure);
  // Which ended jobs have their ranks; read when it is first asked for.
  absl::StatusOr<KeptRanks*> Ranks();
  absl::Status DropSurplusRanks(const EndJob& end);

  SqliteConnection& connection_;
  Statement insert_, end_, release_trees_, find_, find_request_;
  Statement count_ended_, list_ended_, count_ended_of_, list_ended_of_, delete_;
  Statement list_kept_ranks_, find_ended_, drop_ranks_;
  Statement insert_slice_, drop_slices_, drop_orphans_;
  std::optional<KeptRanks> kept_ranks_;  // unset: not read, or what was read is undone
  // In the open transaction.
  bool ranks_changed_ = false;
  bool wrote_slices_ = false;  // wrote the last of a long list of ranks, or dropped one
  std::vector<JobId> abandoned_;
};

// As SqliteReader, part of which it is. Contracts as of Store.
class JobReader {
 public:
  explicit JobReader(SqliteConnection& connection);

  // Those that the state keeps.
  absl::Status Load(StoredState& state);
  absl::StatusOr<JobRecord> Get(JobId id);
  absl::StatusOr<int64_t> Ended(absl::Time before);
  absl::StatusOr<std::vector<OwnedJobs>> EndedOfOwners();

 private:
  // From the row that the statement stands on, which keeps the moment that is read. DATA_LOSS names
  // the row.
  absl::StatusOr<JobRecord> JobAt(const Statement& row);
  // DATA_LOSS: they are not `count` ranks as the writer makes them.
  absl::StatusOr<std::vector<Guid>> RanksOf(JobId job, size_t count);

  Statement active_, find_, ended_, ended_of_owners_, slices_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_JOBS_H_
