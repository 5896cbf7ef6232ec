#include "db/sqlite_ranks.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "db/number_list.h"

namespace coppice {

absl::Status RankWriter::Prepare() {
  RETURN_IF_ERROR(
      connection_.Execute("DELETE FROM job_ranks WHERE job_id NOT IN (SELECT id FROM job)"));
  ASSIGN_OR_RETURN(insert_, connection_.Prepare("INSERT INTO job_ranks VALUES (?, ?, ?)"));
  ASSIGN_OR_RETURN(drop_, connection_.Prepare("DELETE FROM job_ranks WHERE job_id = ?"));
  ASSIGN_OR_RETURN(drop_orphans_, connection_.Prepare(R"sql(
      DELETE FROM job_ranks
      WHERE job_id = ?1 AND NOT EXISTS (SELECT 1 FROM job WHERE id = ?1))sql"));
  return absl::OkStatus();
}

absl::Status RankWriter::Put(const JobRecord& job, size_t slice) {
  const size_t first = slice * kRanksOfSlice;
  const auto ranks = absl::MakeConstSpan(job.endpoints).subspan(first, kRanksOfSlice);
  if (ranks.empty()) return absl::OkStatus();
  std::string text;
  AppendGuids(ranks, text);
  return insert_.Bind(job.id.value()).Bind(static_cast<int64_t>(first)).Bind(text).Run();
}

absl::Status RankWriter::Drop(JobId job) { return drop_.Bind(job.value()).Run(); }

absl::Status RankWriter::DropOrphans(JobId job) { return drop_orphans_.Bind(job.value()).Run(); }

absl::Status RankReader::Prepare() {
  ASSIGN_OR_RETURN(list_, connection_.Prepare(R"sql(
      SELECT first_rank, endpoints FROM job_ranks WHERE job_id = ? ORDER BY first_rank)sql"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Guid>> RankReader::Of(JobId job, size_t count) {
  std::vector<Guid> ranks;
  ranks.reserve(std::min<size_t>(count, 1 << 20));  // of a damaged row it may be anything
  absl::Status damage;
  list_.Bind(job.value());
  while (damage.ok()) {
    ASSIGN_OR_RETURN(const bool row, list_.Step());
    if (!row) break;
    const absl::StatusOr<std::vector<Guid>> slice = ParseGuids(list_.Text(1));
    damage = slice.status();
    if (damage.ok() && list_.Integer(0) != static_cast<int64_t>(ranks.size())) {
      damage = absl::DataLossError(absl::StrCat("ranks from ", ranks.size(), " on are missing"));
    }
    if (damage.ok()) ranks.insert(ranks.end(), slice->begin(), slice->end());
  }
  list_.Reset();
  if (damage.ok() && ranks.size() != count) {
    damage = absl::DataLossError(absl::StrCat(ranks.size(), " ranks where there were ", count));
  }
  if (damage.ok()) return ranks;
  return Annotate(
      damage, absl::StrCat("database ", connection_.path(), ": endpoints of job ", job.value()));
}

}  // namespace coppice
