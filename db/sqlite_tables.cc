#include "db/sqlite_tables.h"

#include <variant>

#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

// The job that comes with the mutation; null: none.
const JobRecord* JobOf(const Mutation& mutation) {
  if (const auto* put = std::get_if<PutJob>(&mutation)) return put->job.get();
  if (const auto* start = std::get_if<StartPlacement>(&mutation)) return start->job.get();
  return nullptr;
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> FindSurplus(Statement& ended, int64_t most,
                                                 absl::Time before) {
  std::vector<int64_t> ids;
  RETURN_IF_ERROR(ended.ForEach([&](const Statement& row) {
    const bool goes = static_cast<int64_t>(ids.size()) < most || row.TimeAt(1) < before;
    if (goes) ids.push_back(row.Integer(0));
    return goes;
  }));
  return ids;
}

size_t SqliteMutator::StepsOf(const Mutation& mutation) {
  const JobRecord* const job = JobOf(mutation);
  return job == nullptr ? 1 : SlicesOf(job->endpoints.size());
}

absl::Status SqliteMutator::ApplyBare(const Mutation& mutation, size_t step) {
  RETURN_IF_ERROR(CheckShape(mutation));
  if (step + 1 < StepsOf(mutation)) return jobs_.PutAhead(*JobOf(mutation), step);
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
  RETURN_IF_ERROR(db_.Sql("SAVEPOINT mutation").Run());
  absl::Status status = ApplyBare(mutation, step);
  if (!status.ok() && db_.in_transaction()) {
    RETURN_IF_ERROR(db_.Sql("ROLLBACK TO mutation").Run());
    RolledBack();
  }
  if (db_.in_transaction()) RETURN_IF_ERROR(db_.Sql("RELEASE mutation").Run());
  return status;
}

void SqliteMutator::Abandon(const Mutation& mutation) { jobs_.Abandon(JobOf(mutation)->id); }

void SqliteMutator::Committed() {
  jobs_.Committed();
  counters_.Committed();
  deeds_.Committed();
}

void SqliteMutator::RolledBack() {
  jobs_.RolledBack();
  counters_.RolledBack();
  deeds_.RolledBack();
}

absl::Status SqliteMutator::Do(const StartPlacement& start) {
  RETURN_IF_ERROR(coppice::Apply(db_, start));
  return Do(PutJob(start.job));
}

absl::StatusOr<StoredState> LoadState(SqliteConnection& db) {
  RETURN_IF_ERROR(db.Sql("BEGIN").Run());
  StoredState state;
  absl::Status loaded = LoadJobs(db, state);
  if (loaded.ok()) loaded = LoadTrees(db, state);
  if (loaded.ok()) loaded = LoadPlacements(db, state);
  if (loaded.ok()) loaded = LoadSettings(db, state);
  if (loaded.ok()) loaded = LoadWayTimes(db, state);
  RETURN_IF_ERROR(db.Sql("COMMIT").Run());
  RETURN_IF_ERROR(loaded);
  return state;
}

}  // namespace coppice
