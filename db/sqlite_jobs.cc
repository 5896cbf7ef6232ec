// Jobs, and their ranks in slices (sqlite_tables.h).
#include <iterator>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "db/json_lists.h"
#include "db/sqlite_tables.h"

namespace coppice {
namespace {

constexpr char kJobColumns[] = R"sql(
    SELECT id, request_id, request_fingerprint, name, owner, kept_bytes, lease_ns, state,
           created_ns, ended_ns, by_administrator, placed_nodes, dropped_ranks,
           partition, account FROM job )sql";

constexpr const char* kJobStates[] = {nullptr, "active", "ended", "expired"};

// Bytes of a list of so many ranks as the database keeps it (json_lists.h).
constexpr int64_t kBytesOfRank = 19;
int64_t BytesOfRanks(size_t ranks) {
  return ranks == 0 ? 0 : kBytesOfRank * static_cast<int64_t>(ranks) + 1;
}

absl::Status CheckJobIdFree(SqliteConnection& db, JobId id) {
  ASSIGN_OR_RETURN(const int64_t taken, db.Sql("SELECT id FROM job WHERE id = ?").Number(id));
  if (taken == 0) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("job ", taken, " exists: register under the next unused id"));
}

// Words for a constraint that `failure` reports; a storage failure stays as it is.
absl::Status ExplainJob(SqliteConnection& db, const JobRecord& job, absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  RETURN_IF_ERROR(CheckJobIdFree(db, job.id));
  ASSIGN_OR_RETURN(const int64_t holder,
                   db.Sql("SELECT id FROM job WHERE owner = ? AND request_id = ?")
                       .Number(job.owner, job.request_id));
  if (holder == 0) return failure;
  return absl::AlreadyExistsError(absl::StrCat(
      "request id \"", job.request_id, "\" belongs to job ", holder, ": use a new request id"));
}

constexpr char kFindEnded[] = R"sql(
    SELECT owner, ended_ns, kept_bytes FROM job WHERE id = ? AND ended_ns IS NOT NULL)sql";

// DATA_LOSS: they are not `count` ranks as the writer makes them.
absl::Status ReadRanks(SqliteConnection& db, JobId job, size_t count, std::vector<Guid>& ranks) {
  ranks.reserve(std::min<size_t>(count, 1 << 20));  // of a damaged row it may be anything
  Statement& slices =
      db.Sql("SELECT first_rank, endpoints FROM job_ranks WHERE job_id = ? ORDER BY first_rank");
  absl::Status damage;
  RETURN_IF_ERROR(slices.Bind(job).ForEach([&](const Statement& row) {
    const absl::StatusOr<std::vector<Guid>> slice = ParseGuids(row.Text(1));
    damage = slice.status();
    if (damage.ok() && row.Integer(0) != static_cast<int64_t>(ranks.size())) {
      damage = absl::DataLossError(absl::StrCat("ranks from ", ranks.size(), " on are missing"));
    }
    if (damage.ok()) ranks.insert(ranks.end(), slice->begin(), slice->end());
    return damage.ok();
  }));
  if (damage.ok() && ranks.size() != count) {
    damage = absl::DataLossError(absl::StrCat(ranks.size(), " ranks where there were ", count));
  }
  return damage.ok() ? damage
                     : slices.Damaged(damage, absl::StrCat("endpoints of job ", job.value()));
}

// DATA_LOSS names the row.
absl::StatusOr<std::vector<JobRecord>> ListJobs(SqliteConnection& db, Statement& list) {
  return list.List<JobRecord>([&](const Statement& row, JobRecord& job) {
    int64_t bytes = 0;
    std::string state;
    row.Read(job.id, job.request_id, job.request_fingerprint, job.name, job.owner, bytes, job.lease,
             state, job.created, job.ended, job.by_administrator, job.placed_nodes,
             job.dropped_ranks, job.partition, job.account);
    job.state = ValueOf<JobState>(kJobStates, state);
    return ReadRanks(db, job.id, static_cast<uint32_t>(bytes / kBytesOfRank), job.endpoints);
  });
}

}  // namespace

// Of which ended jobs the lists of ranks are kept: those that ended last, within a bound of bytes
// for each owner and one for all, where whoever has the most loses first.
class KeptRanks {
 public:
  void Enter(const std::string& owner, absl::Time ended, JobId id, int64_t bytes) {
    if (bytes == 0) return;
    Owner& of = owners_[owner];
    of.rows.insert({ended, id, bytes});
    of.bytes += bytes;
    all_ += bytes;
  }

  void Leave(const std::string& owner, absl::Time ended, JobId id, int64_t bytes) {
    const auto found = owners_.find(owner);
    if (found == owners_.end() || found->second.rows.erase({ended, id, bytes}) == 0) return;
    found->second.bytes -= bytes;
    all_ -= bytes;
    if (found->second.rows.empty()) owners_.erase(found);
  }

  // The jobs whose lists go, out of here already. At most kMaxAtOnce older ones of the owner, then
  // the list that came last, if there is still no room: so the bound always holds for the owner.
  std::vector<JobId> TakeSurplus(const std::string& owner, const KeptRankBytes& limits) {
    std::vector<JobId> gone;
    const auto own = owners_.find(owner);
    if (own != owners_.end()) Shrink(own, limits.per_owner, gone);
    while (all_ > limits.all && gone.size() < 2 * kMaxAtOnce) {
      Shrink(std::max_element(
                 owners_.begin(), owners_.end(),
                 [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; }),
             -1, gone);
    }
    return gone;
  }

 private:
  static constexpr size_t kMaxAtOnce = 64;
  using Row = std::tuple<absl::Time, JobId, int64_t>;
  struct Owner {
    std::set<Row> rows;
    int64_t bytes = 0;
  };
  using Owners = absl::flat_hash_map<std::string, Owner>;

  // To `most` bytes; below 0: by one row.
  void Shrink(Owners::iterator owner, int64_t most, std::vector<JobId>& gone) {
    Owner& of = owner->second;
    for (size_t n = 0; !of.rows.empty() && (most < 0 ? n < 1 : of.bytes > most); ++n) {
      const auto row = n < kMaxAtOnce ? of.rows.begin() : std::prev(of.rows.end());
      gone.push_back(std::get<1>(*row));
      of.bytes -= std::get<2>(*row);
      all_ -= std::get<2>(*row);
      of.rows.erase(row);
    }
    if (of.rows.empty()) owners_.erase(owner);
  }

  Owners owners_;
  int64_t all_ = 0;
};

JobWriter::JobWriter(SqliteConnection& db) : db_(db) {}
JobWriter::~JobWriter() = default;

absl::Status JobWriter::PutAhead(const JobRecord& job, size_t slice) {
  if (slice == 0) RETURN_IF_ERROR(CheckJobIdFree(db_, job.id));
  return PutSlice(job, slice);
}

absl::Status JobWriter::Apply(const PutJob& put) {
  const JobRecord& job = *put.job;
  absl::Status status =
      db_.Sql(R"sql(
      INSERT INTO job (id, request_id, request_fingerprint, name, owner, lease_ns, state, created_ns,
                       ended_ns, by_administrator, placed_nodes, kept_bytes, partition, account)
      VALUES (?, ?, ?, ?, ?, ?, 'active', ?, NULL, ?, ?, ?, ?, ?))sql")
          .Run(job.id, Statement::Optional{job.request_id}, job.request_fingerprint, job.name,
               job.owner, job.lease, job.created, job.by_administrator, job.placed_nodes,
               BytesOfRanks(job.endpoints.size()), job.partition, job.account);
  if (!status.ok()) return ExplainJob(db_, job, std::move(status));
  const size_t slices = SlicesOf(job.endpoints.size());
  wrote_slices_ |= slices > 1;
  return PutSlice(job, slices - 1);
}

absl::Status JobWriter::PutSlice(const JobRecord& job, size_t slice) {
  const size_t first = slice * kRanksOfSlice;
  const auto ranks = absl::MakeConstSpan(job.endpoints).subspan(first, kRanksOfSlice);
  if (ranks.empty()) return absl::OkStatus();
  std::string text;
  AppendGuids(ranks, text);
  return db_.Sql("INSERT INTO job_ranks VALUES (?, ?, ?)").Run(job.id, first, text);
}

absl::Status JobWriter::DropAbandoned() {
  for (const JobId job : abandoned_) {
    RETURN_IF_ERROR(db_.Sql(R"sql(
      DELETE FROM job_ranks
      WHERE job_id = ?1 AND NOT EXISTS (SELECT 1 FROM job WHERE id = ?1))sql")
                        .Run(job));
  }
  wrote_slices_ |= !abandoned_.empty();
  return absl::OkStatus();
}

absl::Status JobWriter::Apply(const EndJob& end) {
  RETURN_IF_ERROR(db_.Sql("DELETE FROM tree WHERE job_id = ?").Run(end.job));
  RETURN_IF_ERROR(
      db_.Sql("UPDATE job SET state = ?, ended_ns = ? WHERE id = ? AND state = 'active'")
          .Run(NameOf(kJobStates, end.state), end.time, end.job));
  if (db_.changes() > 0) return DropSurplusRanks(end);
  return absl::NotFoundError(
      absl::StrCat("no active job ", end.job.value(), ": it was never registered or has ended"));
}

absl::Status JobWriter::ReadKeptRanks() {
  auto kept = std::make_unique<KeptRanks>();
  RETURN_IF_ERROR(db_.Sql(R"sql(
      SELECT id, owner, ended_ns, kept_bytes FROM job INDEXED BY job_by_kept_ranks
      WHERE ended_ns IS NOT NULL AND kept_bytes > 0)sql")
                      .ForEach([&](const Statement& row) {
                        kept->Enter(std::string(row.Text(1)), row.TimeAt(2), JobId(row.Integer(0)),
                                    row.Integer(3));
                      }));
  kept_ranks_ = std::move(kept);
  return absl::OkStatus();
}

absl::Status JobWriter::DropSurplusRanks(const EndJob& end) {
  const bool was_read = kept_ranks_ != nullptr;
  ranks_changed_ = true;
  if (!was_read) RETURN_IF_ERROR(ReadKeptRanks());
  std::string owner;
  RETURN_IF_ERROR(db_.Sql(kFindEnded).Bind(end.job).ForEach([&](const Statement& row) {
    owner = std::string(row.Text(0));
    // Else it has been read with the rest.
    if (was_read) kept_ranks_->Enter(owner, row.TimeAt(1), end.job, row.Integer(2));
  }));
  for (const JobId id : kept_ranks_->TakeSurplus(owner, end.keep)) {
    RETURN_IF_ERROR(
        db_.Sql("UPDATE job SET dropped_ranks = kept_bytes / 19, kept_bytes = 0 WHERE id = ?")
            .Run(id));
    RETURN_IF_ERROR(db_.Sql("DELETE FROM job_ranks WHERE job_id = ?").Run(id));
    wrote_slices_ |= db_.changes() > 1;
  }
  return absl::OkStatus();
}

absl::Status JobWriter::Apply(const PruneJobs& prune) {
  const std::string of_owner = prune.owner.has_value() ? " AND owner = ?1" : "";
  const std::string owner = prune.owner.value_or("");
  Statement& count =
      db_.Sql(absl::StrCat("SELECT count(*) FROM job WHERE ended_ns IS NOT NULL", of_owner));
  Statement& list = db_.Sql(absl::StrCat("SELECT id, ended_ns FROM job WHERE ended_ns IS NOT NULL",
                                         of_owner, " ORDER BY ended_ns, id LIMIT ?"));
  if (prune.owner.has_value()) count.Bind(owner);
  ASSIGN_OR_RETURN(const int64_t ended, count.Number());
  if (prune.owner.has_value()) list.Bind(owner);
  ASSIGN_OR_RETURN(const auto jobs,
                   FindSurplus(list.Bind(prune.rows), ended - prune.keep, prune.before));
  for (const int64_t job : jobs) RETURN_IF_ERROR(Delete(job));
  return absl::OkStatus();
}

absl::Status JobWriter::Delete(int64_t job) {
  if (kept_ranks_ != nullptr) {
    RETURN_IF_ERROR(db_.Sql(kFindEnded).Bind(job).ForEach([&](const Statement& row) {
      kept_ranks_->Leave(std::string(row.Text(0)), row.TimeAt(1), JobId(job), row.Integer(2));
      ranks_changed_ = true;
    }));
  }
  return db_.Sql("DELETE FROM job WHERE id = ?").Run(job);
}

void JobWriter::Committed() {
  abandoned_.clear();
  // Otherwise pages of ranks would take the place of all others, and 64 MB for good.
  if (wrote_slices_) db_.ReleaseMemory();
  wrote_slices_ = false;
  ranks_changed_ = false;
}

void JobWriter::RolledBack() {
  if (ranks_changed_) kept_ranks_.reset();
  ranks_changed_ = false;
}

absl::Status LoadJobs(SqliteConnection& db, StoredState& state) {
  ASSIGN_OR_RETURN(
      state.jobs,
      ListJobs(db, db.Sql(absl::StrCat(kJobColumns, "WHERE state = 'active' ORDER BY id"))));
  return absl::OkStatus();
}

absl::StatusOr<JobRecord> ReadJob(SqliteConnection& db, JobId id) {
  ASSIGN_OR_RETURN(auto found,
                   ListJobs(db, db.Sql(absl::StrCat(kJobColumns, "WHERE id = ?")).Bind(id)));
  if (!found.empty()) return std::move(found.front());
  return absl::NotFoundError(absl::StrCat(
      "job ", id.value(), " was never registered, or it ended so long ago that it is forgotten"));
}

absl::StatusOr<int64_t> CountEndedJobs(SqliteConnection& db, absl::Time before) {
  return db.Sql("SELECT count(*) FROM job WHERE ended_ns < ?").Number(before);
}

absl::StatusOr<std::vector<OwnedJobs>> CountEndedJobsOfOwners(SqliteConnection& db) {
  return db.Sql("SELECT owner, count(*) FROM job WHERE ended_ns IS NOT NULL GROUP BY owner")
      .List<OwnedJobs>(
          [](const Statement& row, OwnedJobs& owned) { row.Read(owned.owner, owned.jobs); });
}

}  // namespace coppice
