#include "db/sqlite_tables.h"

#include <variant>

#include "daemon/base/status_macros.h"
#include "db/record_check.h"

namespace coppice {
namespace {

// The job that comes with the mutation; null: none.
const JobRecord* JobOf(const Mutation& mutation) {
  if (const auto* put = std::get_if<PutJob>(&mutation)) return put->job.get();
  if (const auto* start = std::get_if<StartPlacement>(&mutation)) return start->job.get();
  return nullptr;
}

}  // namespace

size_t SqliteMutator::StepsOf(const Mutation& mutation) {
  const JobRecord* const job = JobOf(mutation);
  return job == nullptr ? 1 : SlicesOf(job->endpoints.size());
}

absl::Status SqliteMutator::ApplyBare(const Mutation& mutation, size_t step) {
  RETURN_IF_ERROR(CheckShape(mutation));
  if (step + 1 < StepsOf(mutation)) return tables_.of<JobWriter>().PutAhead(*JobOf(mutation), step);
  return std::visit(
      [this](const auto& what) -> absl::Status {
        RETURN_IF_ERROR(Do(what));
        if constexpr (requires { what.deed; }) {
          if (what.deed != nullptr)
            return tables_.of<DeedWriter>().Append(*what.deed, DeedLimits());
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

void SqliteMutator::Abandon(const Mutation& mutation) {
  tables_.of<JobWriter>().Abandon(JobOf(mutation)->id);
}

absl::Status SqliteMutator::Do(const StartPlacement& start) {
  RETURN_IF_ERROR(
      tables_.of<PlacementWriter>().Start(start.placement, start.job->id, start.job->created));
  return Do(PutJob(start.job));
}

// Every question leaves its statements reset, also one that fails: a statement half way would keep
// the transaction, and the log that it pins, open.
absl::StatusOr<StoredState> SqliteReader::Load() {
  RETURN_IF_ERROR(begin_.Run());
  StoredState state;
  const absl::Status loaded = tables_.Load(state);
  RETURN_IF_ERROR(commit_.Run());
  RETURN_IF_ERROR(loaded);
  return state;
}

}  // namespace coppice
