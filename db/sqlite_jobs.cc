#include "db/sqlite_jobs.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "db/json_lists.h"
#include "db/refusals.h"

namespace coppice {
namespace {

constexpr char kJobColumns[] = R"sql(
    SELECT id, request_id, request_fingerprint, name, owner, kept_bytes, lease_ns, state,
           created_ns, ended_ns, by_administrator, placed_nodes, dropped_ranks FROM job )sql";

constexpr const char* kJobStates[] = {nullptr, "active", "ended", "expired"};

// Bytes of a list of so many ranks as the database keeps it (json_lists.h), and back.
constexpr int64_t kBytesOfRank = 19;
int64_t BytesOfRanks(size_t ranks) {
  return ranks == 0 ? 0 : kBytesOfRank * static_cast<int64_t>(ranks) + 1;
}
uint32_t RanksOfBytes(int64_t bytes) { return static_cast<uint32_t>(bytes / kBytesOfRank); }

}  // namespace

void KeptRanks::Enter(const std::string& owner, absl::Time ended, JobId id, int64_t bytes) {
  if (bytes == 0) return;
  Owner& of = owners_[owner];
  of.rows.insert({ended, id, bytes});
  of.bytes += bytes;
  all_ += bytes;
}

void KeptRanks::Leave(const std::string& owner, absl::Time ended, JobId id, int64_t bytes) {
  const auto found = owners_.find(owner);
  if (found == owners_.end() || found->second.rows.erase({ended, id, bytes}) == 0) return;
  found->second.bytes -= bytes;
  all_ -= bytes;
  if (found->second.rows.empty()) owners_.erase(found);
}

std::vector<JobId> KeptRanks::TakeSurplus(const std::string& owner, const KeptRankBytes& limits) {
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

void KeptRanks::Shrink(Owners::iterator owner, int64_t most, std::vector<JobId>& gone) {
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

JobWriter::JobWriter(SqliteConnection& connection)
    : connection_(connection),
      insert_(connection, R"sql(
      INSERT INTO job (id, request_id, request_fingerprint, name, owner, lease_ns, state, created_ns,
                       ended_ns, by_administrator, placed_nodes, kept_bytes)
      VALUES (?, ?, ?, ?, ?, ?, 'active', ?, NULL, ?, ?, ?))sql"),
      end_(connection, R"sql(
      UPDATE job SET state = ?, ended_ns = ? WHERE id = ? AND state = 'active')sql"),
      release_trees_(connection, "DELETE FROM tree WHERE job_id = ?"),
      find_(connection, "SELECT id FROM job WHERE id = ?"),
      find_request_(connection, "SELECT id FROM job WHERE owner = ? AND request_id = ?"),
      count_ended_(connection, "SELECT count(*) FROM job WHERE ended_ns IS NOT NULL"),
      list_ended_(connection, R"sql(
      SELECT id, ended_ns FROM job WHERE ended_ns IS NOT NULL ORDER BY ended_ns, id LIMIT ?)sql"),
      count_ended_of_(connection,
                      "SELECT count(*) FROM job WHERE ended_ns IS NOT NULL AND owner = ?"),
      list_ended_of_(connection, R"sql(
      SELECT id, ended_ns FROM job WHERE ended_ns IS NOT NULL AND owner = ?
      ORDER BY ended_ns, id LIMIT ?)sql"),
      delete_(connection, "DELETE FROM job WHERE id = ?"),
      list_kept_ranks_(connection, R"sql(
      SELECT id, owner, ended_ns, kept_bytes FROM job INDEXED BY job_by_kept_ranks
      WHERE ended_ns IS NOT NULL AND kept_bytes > 0)sql"),
      find_ended_(connection, R"sql(
      SELECT owner, ended_ns, kept_bytes FROM job WHERE id = ? AND ended_ns IS NOT NULL)sql"),
      drop_ranks_(connection, R"sql(
      UPDATE job SET dropped_ranks = kept_bytes / 19, kept_bytes = 0 WHERE id = ?)sql"),
      insert_slice_(connection, "INSERT INTO job_ranks VALUES (?, ?, ?)"),
      drop_slices_(connection, "DELETE FROM job_ranks WHERE job_id = ?"),
      drop_orphans_(connection, R"sql(
      DELETE FROM job_ranks
      WHERE job_id = ?1 AND NOT EXISTS (SELECT 1 FROM job WHERE id = ?1))sql") {}

absl::Status JobWriter::PutAhead(const JobRecord& job, size_t slice) {
  if (slice == 0) {
    ASSIGN_OR_RETURN(const int64_t same_id, find_.Number(job.id));
    if (same_id != 0) return JobIdTaken(job.id);
  }
  return PutSlice(job, slice);
}

absl::Status JobWriter::Apply(const PutJob& put) {
  const JobRecord& job = *put.job;
  absl::Status status =
      insert_.Run(job.id, Statement::Optional{job.request_id}, job.request_fingerprint, job.name,
                  job.owner, job.lease, job.created, job.by_administrator, job.placed_nodes,
                  BytesOfRanks(job.endpoints.size()));
  if (!status.ok()) return Explain(job, std::move(status));
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
  return insert_slice_.Run(job.id, first, text);
}

absl::Status JobWriter::Explain(const JobRecord& job, absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  ASSIGN_OR_RETURN(const int64_t same_id, find_.Number(job.id));
  if (same_id != 0) return JobIdTaken(job.id);
  ASSIGN_OR_RETURN(const int64_t same_request, find_request_.Number(job.owner, job.request_id));
  if (same_request != 0) return JobRequestTaken(job.request_id, JobId(same_request));
  return failure;
}

absl::Status JobWriter::DropAbandoned() {
  for (const JobId job : abandoned_) RETURN_IF_ERROR(drop_orphans_.Run(job));
  wrote_slices_ |= !abandoned_.empty();
  return absl::OkStatus();
}

absl::Status JobWriter::Apply(const EndJob& end) {
  RETURN_IF_ERROR(release_trees_.Run(end.job));
  RETURN_IF_ERROR(end_.Run(NameOf(kJobStates, end.state), end.time, end.job));
  return end_.changes() == 0 ? NoActiveJob(end.job) : DropSurplusRanks(end);
}

absl::StatusOr<KeptRanks*> JobWriter::Ranks() {
  if (kept_ranks_.has_value()) return &*kept_ranks_;
  KeptRanks kept;
  RETURN_IF_ERROR(list_kept_ranks_.ForEach([&](const Statement& row) {
    kept.Enter(std::string(row.Text(1)), row.TimeAt(2), JobId(row.Integer(0)), row.Integer(3));
  }));
  kept_ranks_ = std::move(kept);
  return &*kept_ranks_;
}

absl::Status JobWriter::DropSurplusRanks(const EndJob& end) {
  const bool was_read = kept_ranks_.has_value();
  ranks_changed_ = true;
  ASSIGN_OR_RETURN(KeptRanks* const kept, Ranks());
  ASSIGN_OR_RETURN(const bool row, find_ended_.Step(end.job));
  if (!row) return absl::OkStatus();
  std::string owner;
  absl::Time ended;
  int64_t bytes = 0;
  find_ended_.Read(owner, ended, bytes);
  find_ended_.Reset();
  if (was_read) kept->Enter(owner, ended, end.job, bytes);  // else it has been read with the rest
  for (const JobId id : kept->TakeSurplus(owner, end.keep)) {
    RETURN_IF_ERROR(drop_ranks_.Run(id));
    RETURN_IF_ERROR(drop_slices_.Run(id));
    wrote_slices_ |= drop_slices_.changes() > 1;
  }
  return absl::OkStatus();
}

absl::Status JobWriter::Apply(const PruneJobs& prune) {
  const bool of_all = !prune.owner.has_value();
  Statement& count = of_all ? count_ended_ : count_ended_of_;
  Statement& list = of_all ? list_ended_ : list_ended_of_;
  if (!of_all) {
    count.Bind(*prune.owner);
    list.Bind(*prune.owner);
  }
  ASSIGN_OR_RETURN(const int64_t ended, count.Number());
  std::vector<int64_t> jobs;
  list.Bind(prune.rows);
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, list.Step());
    if (!row) break;
    const bool is_kept = static_cast<int64_t>(jobs.size()) >= ended - prune.keep;
    if (is_kept && list.TimeAt(1) >= prune.before) break;
    jobs.push_back(list.Integer(0));
  }
  list.Reset();
  for (const int64_t job : jobs) {
    if (kept_ranks_.has_value()) {
      ASSIGN_OR_RETURN(const bool row, find_ended_.Step(job));
      if (row) {
        kept_ranks_->Leave(std::string(find_ended_.Text(0)), find_ended_.TimeAt(1), JobId(job),
                           find_ended_.Integer(2));
        ranks_changed_ = true;
      }
      find_ended_.Reset();
    }
    RETURN_IF_ERROR(delete_.Run(job));
  }
  return absl::OkStatus();
}

void JobWriter::Committed() {
  abandoned_.clear();
  // Otherwise pages of ranks would take the place of all others, and 64 MB for good.
  if (wrote_slices_) connection_.ReleaseMemory();
  wrote_slices_ = false;
  ranks_changed_ = false;
}

void JobWriter::RolledBack() {
  if (ranks_changed_) kept_ranks_.reset();
  ranks_changed_ = false;
}

JobReader::JobReader(SqliteConnection& connection)
    : active_(connection, absl::StrCat(kJobColumns, "WHERE state = 'active' ORDER BY id")),
      find_(connection, absl::StrCat(kJobColumns, "WHERE id = ?")),
      ended_(connection, "SELECT count(*) FROM job WHERE ended_ns < ?"),
      ended_of_owners_(connection, R"sql(
      SELECT owner, count(*) FROM job WHERE ended_ns IS NOT NULL GROUP BY owner)sql"),
      slices_(connection, R"sql(
      SELECT first_rank, endpoints FROM job_ranks WHERE job_id = ? ORDER BY first_rank)sql") {}

absl::Status JobReader::Load(StoredState& state) {
  return active_.ForEach([&](const Statement& row) -> absl::Status {
    ASSIGN_OR_RETURN(state.jobs.emplace_back(), JobAt(row));
    return absl::OkStatus();
  });
}

absl::StatusOr<JobRecord> JobReader::Get(JobId id) {
  ASSIGN_OR_RETURN(const bool row, find_.Step(id));
  if (!row) return NoSuchJob(id);
  absl::StatusOr<JobRecord> job = JobAt(find_);
  find_.Reset();
  return job;
}

absl::StatusOr<int64_t> JobReader::Ended(absl::Time before) { return ended_.Number(before); }

absl::StatusOr<std::vector<OwnedJobs>> JobReader::EndedOfOwners() {
  return ended_of_owners_.List<OwnedJobs>(
      [](const Statement& row, OwnedJobs& owned) { row.Read(owned.owner, owned.jobs); });
}

absl::StatusOr<JobRecord> JobReader::JobAt(const Statement& row) {
  JobRecord job;
  int64_t bytes = 0;
  std::string state;
  row.Read(job.id, job.request_id, job.request_fingerprint, job.name, job.owner, bytes, job.lease,
           state, job.created, job.ended, job.by_administrator, job.placed_nodes,
           job.dropped_ranks);
  job.state = ValueOf<JobState>(kJobStates, state);
  ASSIGN_OR_RETURN(job.endpoints, RanksOf(job.id, RanksOfBytes(bytes)));
  return job;
}

absl::StatusOr<std::vector<Guid>> JobReader::RanksOf(JobId job, size_t count) {
  std::vector<Guid> ranks;
  ranks.reserve(std::min<size_t>(count, 1 << 20));  // of a damaged row it may be anything
  absl::Status damage;
  slices_.Bind(job);
  while (damage.ok()) {
    ASSIGN_OR_RETURN(const bool row, slices_.Step());
    if (!row) break;
    const absl::StatusOr<std::vector<Guid>> slice = ParseGuids(slices_.Text(1));
    damage = slice.status();
    if (damage.ok() && slices_.Integer(0) != static_cast<int64_t>(ranks.size())) {
      damage = absl::DataLossError(absl::StrCat("ranks from ", ranks.size(), " on are missing"));
    }
    if (damage.ok()) ranks.insert(ranks.end(), slice->begin(), slice->end());
  }
  slices_.Reset();
  if (damage.ok() && ranks.size() != count) {
    damage = absl::DataLossError(absl::StrCat(ranks.size(), " ranks where there were ", count));
  }
  if (damage.ok()) return ranks;
  return slices_.Damaged(damage, absl::StrCat("endpoints of job ", job.value()));
}

}  // namespace coppice
