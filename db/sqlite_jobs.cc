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

constexpr char kActiveJobs[] = R"sql(
    SELECT id, request_id, request_fingerprint, name, owner, kept_bytes, lease_ns, state,
           created_ns, ended_ns, by_administrator, placed_nodes, dropped_ranks
    FROM job WHERE state = 'active' ORDER BY id)sql";
constexpr char kJob[] = R"sql(
    SELECT id, request_id, request_fingerprint, name, owner, kept_bytes, lease_ns, state,
           created_ns, ended_ns, by_administrator, placed_nodes, dropped_ranks
    FROM job WHERE id = ?)sql";

const char* ToString(JobState state) {
  switch (state) {
    case JobState::kActive:
      return "active";
    case JobState::kEnded:
      return "ended";
    case JobState::kExpired:
      return "expired";
  }
  return "unknown";  // which the table refuses
}

JobState JobStateOf(std::string_view text) {
  if (text == "active") return JobState::kActive;
  return text == "ended" ? JobState::kEnded : JobState::kExpired;
}

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

absl::Status JobWriter::Prepare() {
  ASSIGN_OR_RETURN(insert_, connection_.Prepare(R"sql(
      INSERT INTO job (id, request_id, request_fingerprint, name, owner, lease_ns, state, created_ns,
                       ended_ns, by_administrator, placed_nodes, kept_bytes)
      VALUES (?, ?, ?, ?, ?, ?, 'active', ?, NULL, ?, ?, ?))sql"));
  ASSIGN_OR_RETURN(end_, connection_.Prepare(R"sql(
      UPDATE job SET state = ?, ended_ns = ? WHERE id = ? AND state = 'active')sql"));
  ASSIGN_OR_RETURN(release_trees_, connection_.Prepare("DELETE FROM tree WHERE job_id = ?"));
  ASSIGN_OR_RETURN(find_, connection_.Prepare("SELECT id FROM job WHERE id = ?"));
  ASSIGN_OR_RETURN(find_request_,
                   connection_.Prepare("SELECT id FROM job WHERE owner = ? AND request_id = ?"));
  RETURN_IF_ERROR(PrepareEnds());
  return PrepareRanks();
}

absl::Status JobWriter::PrepareEnds() {
  ASSIGN_OR_RETURN(count_ended_,
                   connection_.Prepare("SELECT count(*) FROM job WHERE ended_ns IS NOT NULL"));
  ASSIGN_OR_RETURN(list_ended_, connection_.Prepare(R"sql(
      SELECT id, ended_ns FROM job WHERE ended_ns IS NOT NULL ORDER BY ended_ns, id LIMIT ?)sql"));
  ASSIGN_OR_RETURN(
      count_ended_of_,
      connection_.Prepare("SELECT count(*) FROM job WHERE ended_ns IS NOT NULL AND owner = ?"));
  ASSIGN_OR_RETURN(list_ended_of_, connection_.Prepare(R"sql(
      SELECT id, ended_ns FROM job WHERE ended_ns IS NOT NULL AND owner = ?
      ORDER BY ended_ns, id LIMIT ?)sql"));
  ASSIGN_OR_RETURN(list_kept_ranks_, connection_.Prepare(R"sql(
      SELECT id, owner, ended_ns, kept_bytes FROM job INDEXED BY job_by_kept_ranks
      WHERE ended_ns IS NOT NULL AND kept_bytes > 0)sql"));
  ASSIGN_OR_RETURN(find_ended_, connection_.Prepare(R"sql(
      SELECT owner, ended_ns, kept_bytes FROM job WHERE id = ? AND ended_ns IS NOT NULL)sql"));
  ASSIGN_OR_RETURN(drop_ranks_, connection_.Prepare(R"sql(
      UPDATE job SET dropped_ranks = kept_bytes / 19, kept_bytes = 0 WHERE id = ?)sql"));
  ASSIGN_OR_RETURN(delete_, connection_.Prepare("DELETE FROM job WHERE id = ?"));
  return absl::OkStatus();
}

absl::Status JobWriter::PrepareRanks() {
  RETURN_IF_ERROR(
      connection_.Execute("DELETE FROM job_ranks WHERE job_id NOT IN (SELECT id FROM job)"));
  ASSIGN_OR_RETURN(insert_slice_, connection_.Prepare("INSERT INTO job_ranks VALUES (?, ?, ?)"));
  ASSIGN_OR_RETURN(drop_slices_, connection_.Prepare("DELETE FROM job_ranks WHERE job_id = ?"));
  ASSIGN_OR_RETURN(drop_orphans_, connection_.Prepare(R"sql(
      DELETE FROM job_ranks
      WHERE job_id = ?1 AND NOT EXISTS (SELECT 1 FROM job WHERE id = ?1))sql"));
  return absl::OkStatus();
}

absl::Status JobWriter::PutAhead(const JobRecord& job, size_t slice) {
  if (slice == 0) {
    find_.Bind(job.id.value());
    ASSIGN_OR_RETURN(const int64_t same_id, find_.Number());
    if (same_id != 0) return JobIdTaken(job.id);
  }
  return PutSlice(job, slice);
}

absl::Status JobWriter::Apply(const PutJob& put) {
  const JobRecord& job = *put.job;
  insert_.Bind(job.id.value()).BindOptional(job.request_id);
  insert_.Bind(static_cast<int64_t>(job.request_fingerprint)).Bind(job.name).Bind(job.owner);
  insert_.Bind(absl::ToInt64Nanoseconds(job.lease)).Bind(job.created);
  insert_.Bind(int64_t{job.by_administrator}).Bind(int64_t{job.placed_nodes});
  insert_.Bind(BytesOfRanks(job.endpoints.size()));
  absl::Status status = insert_.Run();
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
  return insert_slice_.Bind(job.id.value()).Bind(static_cast<int64_t>(first)).Bind(text).Run();
}

absl::Status JobWriter::Explain(const JobRecord& job, absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  find_.Bind(job.id.value());
  ASSIGN_OR_RETURN(const int64_t same_id, find_.Number());
  if (same_id != 0) return JobIdTaken(job.id);
  find_request_.Bind(job.owner).Bind(job.request_id);
  ASSIGN_OR_RETURN(const int64_t same_request, find_request_.Number());
  if (same_request != 0) return JobRequestTaken(job.request_id, JobId(same_request));
  return failure;
}

absl::Status JobWriter::DropAbandoned() {
  for (const JobId job : abandoned_) RETURN_IF_ERROR(drop_orphans_.Bind(job.value()).Run());
  wrote_slices_ |= !abandoned_.empty();
  return absl::OkStatus();
}

absl::Status JobWriter::Apply(const EndJob& end) {
  RETURN_IF_ERROR(release_trees_.Bind(end.job.value()).Run());
  RETURN_IF_ERROR(end_.Bind(ToString(end.state)).Bind(end.time).Bind(end.job.value()).Run());
  return connection_.changes() == 0 ? NoActiveJob(end.job) : DropSurplusRanks(end);
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
  ASSIGN_OR_RETURN(const bool row, find_ended_.Bind(end.job.value()).Step());
  if (!row) return absl::OkStatus();
  const std::string owner(find_ended_.Text(0));
  const absl::Time ended = find_ended_.TimeAt(1);
  const int64_t bytes = find_ended_.Integer(2);
  find_ended_.Reset();
  if (was_read) kept->Enter(owner, ended, end.job, bytes);  // else it has been read with the rest
  for (const JobId id : kept->TakeSurplus(owner, end.keep)) {
    RETURN_IF_ERROR(drop_ranks_.Bind(id.value()).Run());
    RETURN_IF_ERROR(drop_slices_.Bind(id.value()).Run());
    wrote_slices_ |= connection_.changes() > 1;
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
  list.Bind(int64_t{prune.rows});
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
      ASSIGN_OR_RETURN(const bool row, find_ended_.Bind(job).Step());
      if (row) {
        kept_ranks_->Leave(std::string(find_ended_.Text(0)), find_ended_.TimeAt(1), JobId(job),
                           find_ended_.Integer(2));
        ranks_changed_ = true;
      }
      find_ended_.Reset();
    }
    RETURN_IF_ERROR(delete_.Bind(job).Run());
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

absl::Status JobReader::Prepare() {
  ASSIGN_OR_RETURN(active_, connection_.Prepare(kActiveJobs));
  ASSIGN_OR_RETURN(find_, connection_.Prepare(kJob));
  ASSIGN_OR_RETURN(ended_, connection_.Prepare("SELECT count(*) FROM job WHERE ended_ns < ?"));
  ASSIGN_OR_RETURN(ended_of_owners_, connection_.Prepare(R"sql(
      SELECT owner, count(*) FROM job WHERE ended_ns IS NOT NULL GROUP BY owner)sql"));
  ASSIGN_OR_RETURN(slices_, connection_.Prepare(R"sql(
      SELECT first_rank, endpoints FROM job_ranks WHERE job_id = ? ORDER BY first_rank)sql"));
  return absl::OkStatus();
}

absl::Status JobReader::Load(StoredState& state) {
  return active_.ForEach([&](const Statement& row) -> absl::Status {
    ASSIGN_OR_RETURN(state.jobs.emplace_back(), JobAt(row));
    return absl::OkStatus();
  });
}

absl::StatusOr<JobRecord> JobReader::Get(JobId id) {
  ASSIGN_OR_RETURN(const bool row, find_.Bind(id.value()).Step());
  if (!row) return NoSuchJob(id);
  absl::StatusOr<JobRecord> job = JobAt(find_);
  find_.Reset();
  return job;
}

absl::StatusOr<int64_t> JobReader::Ended(absl::Time before) { return ended_.Bind(before).Number(); }

absl::StatusOr<std::vector<OwnedJobs>> JobReader::EndedOfOwners() {
  std::vector<OwnedJobs> owners;
  RETURN_IF_ERROR(ended_of_owners_.ForEach([&](const Statement& row) {
    owners.push_back({std::string(row.Text(0)), row.Integer(1)});
  }));
  return owners;
}

absl::StatusOr<JobRecord> JobReader::JobAt(const Statement& row) {
  JobRecord job;
  job.id = JobId(row.Integer(0));
  job.request_id = std::string(row.Text(1));
  job.request_fingerprint = static_cast<uint64_t>(row.Integer(2));
  job.name = std::string(row.Text(3));
  job.owner = std::string(row.Text(4));
  ASSIGN_OR_RETURN(job.endpoints, RanksOf(job.id, RanksOfBytes(row.Integer(5))));
  const int64_t lease_ns = row.Integer(6);
  job.lease = lease_ns == INT64_MAX ? absl::InfiniteDuration() : absl::Nanoseconds(lease_ns);
  job.state = JobStateOf(row.Text(7));
  job.created = row.TimeAt(8);
  job.ended = row.IsNull(9) ? absl::InfiniteFuture() : row.TimeAt(9);
  job.by_administrator = row.Integer(10) != 0;
  job.placed_nodes = row.Word(11);
  job.dropped_ranks = row.Word(12);
  return job;
}

absl::StatusOr<std::vector<Guid>> JobReader::RanksOf(JobId job, size_t count) {
  std::vector<Guid> ranks;
  ranks.reserve(std::min<size_t>(count, 1 << 20));  // of a damaged row it may be anything
  absl::Status damage;
  slices_.Bind(job.value());
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
  return Annotate(
      damage, absl::StrCat("database ", connection_.path(), ": endpoints of job ", job.value()));
}

}  // namespace coppice
