#include "db/sqlite_mutations.h"

#include <utility>
#include <vector>

#include "daemon/base/status_macros.h"
#include "db/record_check.h"
#include "db/refusals.h"

namespace coppice {
namespace {

// The job that comes with the mutation; null: none.
const JobRecord* JobOf(const Mutation& mutation) {
  if (const auto* put = std::get_if<PutJob>(&mutation)) return put->job.get();
  if (const auto* start = std::get_if<StartPlacement>(&mutation)) return start->job.get();
  return nullptr;
}

}  // namespace

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

absl::StatusOr<std::unique_ptr<SqliteMutator>> SqliteMutator::Create(Connection& connection) {
  auto mutator = std::unique_ptr<SqliteMutator>(new SqliteMutator(connection));
  ASSIGN_OR_RETURN(mutator->savepoint_, connection.Prepare("SAVEPOINT mutation"));
  ASSIGN_OR_RETURN(mutator->release_savepoint_, connection.Prepare("RELEASE mutation"));
  ASSIGN_OR_RETURN(mutator->rollback_savepoint_, connection.Prepare("ROLLBACK TO mutation"));
  RETURN_IF_ERROR(mutator->PrepareJobs());
  RETURN_IF_ERROR(mutator->PrepareEnds());
  RETURN_IF_ERROR(mutator->PrepareTrees());
  RETURN_IF_ERROR(mutator->PrepareRevisions());
  RETURN_IF_ERROR(mutator->PrepareInventory());
  RETURN_IF_ERROR(mutator->events_.Prepare());
  RETURN_IF_ERROR(mutator->measurements_.Prepare());
  RETURN_IF_ERROR(mutator->patterns_.Prepare());
  RETURN_IF_ERROR(mutator->distances_.Prepare());
  RETURN_IF_ERROR(mutator->placements_.Prepare());
  RETURN_IF_ERROR(mutator->orders_.Prepare());
  RETURN_IF_ERROR(mutator->ranks_.Prepare());
  RETURN_IF_ERROR(mutator->deeds_.Prepare());
  return mutator;
}

absl::Status SqliteMutator::PrepareJobs() {
  ASSIGN_OR_RETURN(insert_job_, connection_.Prepare(R"sql(
      INSERT INTO job (id, request_id, request_fingerprint, name, owner, lease_ns, state, created_ns,
                       ended_ns, by_administrator, placed_nodes, kept_bytes)
      VALUES (?, ?, ?, ?, ?, ?, 'active', ?, NULL, ?, ?, ?))sql"));
  ASSIGN_OR_RETURN(end_job_, connection_.Prepare(R"sql(
      UPDATE job SET state = ?, ended_ns = ? WHERE id = ? AND state = 'active')sql"));
  ASSIGN_OR_RETURN(release_job_trees_, connection_.Prepare("DELETE FROM tree WHERE job_id = ?"));
  ASSIGN_OR_RETURN(find_job_, connection_.Prepare("SELECT id FROM job WHERE id = ?"));
  ASSIGN_OR_RETURN(find_job_request_,
                   connection_.Prepare("SELECT id FROM job WHERE owner = ? AND request_id = ?"));
  ASSIGN_OR_RETURN(find_active_job_,
                   connection_.Prepare("SELECT id FROM job WHERE id = ? AND state = 'active'"));
  ASSIGN_OR_RETURN(put_profile_, connection_.Prepare(R"sql(
      INSERT INTO profile (id, toml) VALUES (1, ?)
      ON CONFLICT (id) DO UPDATE SET toml = excluded.toml)sql"));
  ASSIGN_OR_RETURN(delete_profile_, connection_.Prepare("DELETE FROM profile"));
  return absl::OkStatus();
}

absl::Status SqliteMutator::PrepareEnds() {
  ASSIGN_OR_RETURN(count_ended_jobs_,
                   connection_.Prepare("SELECT count(*) FROM job WHERE ended_ns IS NOT NULL"));
  ASSIGN_OR_RETURN(list_ended_jobs_, connection_.Prepare(R"sql(
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
  ASSIGN_OR_RETURN(find_ended_job_, connection_.Prepare(R"sql(
      SELECT owner, ended_ns, kept_bytes FROM job WHERE id = ? AND ended_ns IS NOT NULL)sql"));
  ASSIGN_OR_RETURN(drop_ranks_, connection_.Prepare(R"sql(
      UPDATE job SET dropped_ranks = kept_bytes / 19, kept_bytes = 0 WHERE id = ?)sql"));
  ASSIGN_OR_RETURN(put_quota_, connection_.Prepare(R"sql(
      INSERT INTO quota (holder_kind, holder, limit_name, value) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET value = excluded.value)sql"));
  ASSIGN_OR_RETURN(delete_quota_, connection_.Prepare(R"sql(
      DELETE FROM quota WHERE holder_kind = ? AND holder = ? AND limit_name = ?)sql"));
  ASSIGN_OR_RETURN(delete_job_, connection_.Prepare("DELETE FROM job WHERE id = ?"));
  return absl::OkStatus();
}

size_t SqliteMutator::StepsOf(const Mutation& mutation) {
  const JobRecord* const job = JobOf(mutation);
  return job == nullptr ? 1 : SlicesOf(job->endpoints.size());
}

absl::Status SqliteMutator::ApplyBare(const Mutation& mutation, size_t step) {
  RETURN_IF_ERROR(std::visit([](const auto& what) { return CheckShape(what); }, mutation));
  if (step + 1 < StepsOf(mutation)) return PutAhead(*JobOf(mutation), step);
  return std::visit(
      [this](const auto& what) -> absl::Status {
        RETURN_IF_ERROR(Do(what));
        if constexpr (requires { what.deed; }) {
          if (what.deed != nullptr) return deeds_.Append(*what.deed, DeedLimits());
        }
        return absl::OkStatus();
      },
      mutation);
}

absl::Status SqliteMutator::Apply(const Mutation& mutation, size_t step) {
  RETURN_IF_ERROR(savepoint_.Run());
  absl::Status status = ApplyBare(mutation, step);
  if (!status.ok() && connection_.in_transaction()) {
    RETURN_IF_ERROR(rollback_savepoint_.Run());
    RolledBack();
  }
  if (connection_.in_transaction()) RETURN_IF_ERROR(release_savepoint_.Run());
  return status;
}

void SqliteMutator::Abandon(const Mutation& mutation) { abandoned_.push_back(JobOf(mutation)->id); }

absl::Status SqliteMutator::DropAbandoned() {
  for (const JobId job : abandoned_) RETURN_IF_ERROR(ranks_.DropOrphans(job));
  wrote_slices_ |= !abandoned_.empty();
  return absl::OkStatus();
}

absl::Status SqliteMutator::PutAhead(const JobRecord& job, size_t step) {
  if (step == 0) {
    find_job_.Bind(job.id.value());
    ASSIGN_OR_RETURN(const int64_t same_id, find_job_.Number());
    if (same_id != 0) return JobIdTaken(job.id);
  }
  return ranks_.Put(job, step);
}

absl::Status SqliteMutator::Do(const PutJob& put) {
  const JobRecord& job = *put.job;
  insert_job_.Bind(job.id.value()).BindOptional(job.request_id);
  insert_job_.Bind(static_cast<int64_t>(job.request_fingerprint)).Bind(job.name).Bind(job.owner);
  insert_job_.Bind(absl::ToInt64Nanoseconds(job.lease)).Bind(job.created);
  insert_job_.Bind(int64_t{job.by_administrator}).Bind(int64_t{job.placed_nodes});
  insert_job_.Bind(BytesOfRanks(job.endpoints.size()));
  absl::Status status = insert_job_.Run();
  if (!status.ok()) return ExplainJob(job, std::move(status));
  const size_t slices = SlicesOf(job.endpoints.size());
  wrote_slices_ |= slices > 1;
  return ranks_.Put(job, slices - 1);
}

absl::Status SqliteMutator::ExplainJob(const JobRecord& job, absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  find_job_.Bind(job.id.value());
  ASSIGN_OR_RETURN(const int64_t same_id, find_job_.Number());
  if (same_id != 0) return JobIdTaken(job.id);
  find_job_request_.Bind(job.owner).Bind(job.request_id);
  ASSIGN_OR_RETURN(const int64_t same_request, find_job_request_.Number());
  if (same_request != 0) return JobRequestTaken(job.request_id, JobId(same_request));
  return failure;
}

absl::Status SqliteMutator::Do(const EndJob& end) {
  RETURN_IF_ERROR(release_job_trees_.Bind(end.job.value()).Run());
  RETURN_IF_ERROR(end_job_.Bind(ToString(end.state)).Bind(end.time).Bind(end.job.value()).Run());
  return connection_.changes() == 0 ? NoActiveJob(end.job) : DropSurplusRanks(end);
}

absl::StatusOr<KeptRanks*> SqliteMutator::Ranks() {
  if (kept_ranks_.has_value()) return &*kept_ranks_;
  KeptRanks kept;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, list_kept_ranks_.Step());
    if (!row) break;
    kept.Enter(std::string(list_kept_ranks_.Text(1)), list_kept_ranks_.TimeAt(2),
               JobId(list_kept_ranks_.Integer(0)), list_kept_ranks_.Integer(3));
  }
  kept_ranks_ = std::move(kept);
  return &*kept_ranks_;
}

absl::Status SqliteMutator::DropSurplusRanks(const EndJob& end) {
  const bool was_read = kept_ranks_.has_value();
  ranks_changed_ = true;
  ASSIGN_OR_RETURN(KeptRanks* const kept, Ranks());
  ASSIGN_OR_RETURN(const bool row, find_ended_job_.Bind(end.job.value()).Step());
  if (!row) return absl::OkStatus();
  const std::string owner(find_ended_job_.Text(0));
  const absl::Time ended = find_ended_job_.TimeAt(1);
  const int64_t bytes = find_ended_job_.Integer(2);
  find_ended_job_.Reset();
  if (was_read) kept->Enter(owner, ended, end.job, bytes);  // else it has been read with the rest
  for (const JobId id : kept->TakeSurplus(owner, end.keep)) {
    RETURN_IF_ERROR(drop_ranks_.Bind(id.value()).Run());
    RETURN_IF_ERROR(ranks_.Drop(id));
    wrote_slices_ |= connection_.changes() > 1;
  }
  return absl::OkStatus();
}

absl::Status SqliteMutator::Do(const PutQuota& put) {
  static constexpr const char* kKinds[] = {"", "user", "account", "tenant"};
  const QuotaRecord& quota = put.quota;
  Statement& statement = put.drop ? delete_quota_ : put_quota_;
  statement.Bind(kKinds[static_cast<size_t>(quota.kind)]).Bind(quota.holder).Bind(quota.limit);
  if (!put.drop) statement.Bind(quota.value);
  return statement.Run();
}

absl::Status SqliteMutator::Do(const StartPlacement& start) {
  RETURN_IF_ERROR(placements_.Start(start.placement, start.job->id, start.job->created));
  return Do(PutJob(start.job));
}

absl::Status SqliteMutator::Do(const PutProfile& put) {
  return put.toml.empty() ? delete_profile_.Run() : put_profile_.Bind(put.toml).Run();
}

absl::Status SqliteMutator::Do(const PruneJobs& prune) {
  const bool of_all = !prune.owner.has_value();
  Statement& count = of_all ? count_ended_jobs_ : count_ended_of_;
  Statement& list = of_all ? list_ended_jobs_ : list_ended_of_;
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
      ASSIGN_OR_RETURN(const bool row, find_ended_job_.Bind(job).Step());
      if (row) {
        kept_ranks_->Leave(std::string(find_ended_job_.Text(0)), find_ended_job_.TimeAt(1),
                           JobId(job), find_ended_job_.Integer(2));
        ranks_changed_ = true;
      }
      find_ended_job_.Reset();
    }
    RETURN_IF_ERROR(delete_job_.Bind(job).Run());
  }
  return absl::OkStatus();
}

}  // namespace coppice
