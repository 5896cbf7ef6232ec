#include "db/sqlite_placements.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/json_lists.h"
#include "db/refusals.h"

namespace coppice {
namespace {

#define COPPICE_PLACEMENT_COLUMNS                                                          \
  "id, request_id, request_fingerprint, name, owner, nodes, ranks_per_node, permutation, " \
  "is_exclusive, term_ns, fabric_version, reason, measures, state, job_id, created_ns, "   \
  "ended_ns, by_administrator"

const char* ToString(PlacementState state) {
  switch (state) {
    case PlacementState::kHeld:
      return "held";
    case PlacementState::kStarted:
      return "started";
    case PlacementState::kReleased:
      return "released";
    case PlacementState::kExpired:
      return "expired";
  }
  return "unknown";  // which the table refuses
}

PlacementState PlacementStateOf(std::string_view text) {
  if (text == "held") return PlacementState::kHeld;
  if (text == "started") return PlacementState::kStarted;
  return text == "released" ? PlacementState::kReleased : PlacementState::kExpired;
}

}  // namespace

absl::Status PlacementWriter::Prepare() {
  ASSIGN_OR_RETURN(
      insert_,
      connection_.Prepare("INSERT INTO placement (" COPPICE_PLACEMENT_COLUMNS ") VALUES "
                          "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'held', NULL, ?, NULL, ?)"));
  ASSIGN_OR_RETURN(insert_node_, connection_.Prepare("INSERT INTO placement_node VALUES (?, ?)"));
  ASSIGN_OR_RETURN(end_, connection_.Prepare(R"sql(
      UPDATE placement SET state = ?, ended_ns = ?, job_id = nullif(?, 0)
      WHERE id = ? AND state = 'held')sql"));
  ASSIGN_OR_RETURN(find_, connection_.Prepare("SELECT id FROM placement WHERE id = ?"));
  ASSIGN_OR_RETURN(
      find_request_,
      connection_.Prepare("SELECT id FROM placement WHERE owner = ? AND request_id = ?"));
  ASSIGN_OR_RETURN(find_node_,
                   connection_.Prepare("SELECT placement_id FROM placement_node WHERE node = ?"));
  ASSIGN_OR_RETURN(count_ended_,
                   connection_.Prepare("SELECT count(*) FROM placement WHERE ended_ns NOT NULL"));
  ASSIGN_OR_RETURN(list_ended_, connection_.Prepare(R"sql(
      SELECT id, ended_ns FROM placement WHERE ended_ns IS NOT NULL
        AND NOT (state = 'started' AND is_exclusive = 1 AND EXISTS (
          SELECT 1 FROM job WHERE job.id = placement.job_id AND job.state = 'active'))
      ORDER BY ended_ns, id LIMIT ?)sql"));
  ASSIGN_OR_RETURN(delete_, connection_.Prepare("DELETE FROM placement WHERE id = ?"));
  return absl::OkStatus();
}

absl::Status PlacementWriter::Put(const PutPlacements& put) {
  for (const PlacementRecord& placement : put.placements) RETURN_IF_ERROR(Put(placement));
  return absl::OkStatus();
}

absl::Status PlacementWriter::Put(const PlacementRecord& placement) {
  std::string nodes, permutation;
  AppendTexts(placement.nodes, nodes);
  AppendNumbers(std::vector<int64_t>(placement.permutation.begin(), placement.permutation.end()),
                permutation);
  insert_.Bind(placement.id.value()).BindOptional(placement.request_id);
  insert_.Bind(static_cast<int64_t>(placement.request_fingerprint)).Bind(placement.name);
  insert_.Bind(placement.owner).Bind(nodes).Bind(int64_t{placement.ranks_per_node});
  insert_.Bind(permutation).Bind(int64_t{placement.is_exclusive});
  insert_.Bind(absl::ToInt64Nanoseconds(placement.term));
  insert_.Bind(static_cast<int64_t>(placement.fabric_version)).Bind(placement.reason);
  insert_.Bind(placement.measures).Bind(placement.created);
  absl::Status status = insert_.Bind(int64_t{placement.by_administrator}).Run();
  if (!status.ok()) return Explain(placement, std::move(status));
  for (const std::string& node : placement.nodes) {
    status = insert_node_.Bind(node).Bind(placement.id.value()).Run();
    if (!status.ok()) return ExplainNode(node, std::move(status));
  }
  return absl::OkStatus();
}

absl::Status PlacementWriter::Explain(const PlacementRecord& placement, absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  find_.Bind(placement.id.value());
  ASSIGN_OR_RETURN(const int64_t same_id, find_.Number());
  if (same_id != 0) return PlacementIdTaken(placement.id);
  find_request_.Bind(placement.owner).Bind(placement.request_id);
  ASSIGN_OR_RETURN(const int64_t same_request, find_request_.Number());
  if (same_request != 0) {
    return PlacementRequestTaken(placement.request_id, PlacementId(same_request));
  }
  return failure;
}

absl::Status PlacementWriter::ExplainNode(const std::string& node, absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  find_node_.Bind(node);
  ASSIGN_OR_RETURN(const int64_t holder, find_node_.Number());
  return holder == 0 ? failure : NodeHeld(node, PlacementId(holder));
}

absl::Status PlacementWriter::End(const EndPlacement& end) {
  end_.Bind(ToString(end.state)).Bind(end.time).Bind(int64_t{0});
  RETURN_IF_ERROR(end_.Bind(end.placement.value()).Run());
  return connection_.changes() == 0 ? NoHeldPlacement(end.placement) : absl::OkStatus();
}

absl::Status PlacementWriter::Start(PlacementId id, JobId job, absl::Time time) {
  end_.Bind(ToString(PlacementState::kStarted)).Bind(time).Bind(job.value());
  RETURN_IF_ERROR(end_.Bind(id.value()).Run());
  return connection_.changes() == 0 ? NoHeldPlacement(id) : absl::OkStatus();
}

absl::Status PlacementWriter::Prune(const PrunePlacements& prune) {
  ASSIGN_OR_RETURN(const int64_t ended, count_ended_.Number());
  std::vector<int64_t> placements;
  list_ended_.Bind(int64_t{prune.rows});
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, list_ended_.Step());
    if (!row) break;
    const bool is_kept = static_cast<int64_t>(placements.size()) >= ended - prune.keep;
    if (is_kept && list_ended_.TimeAt(1) >= prune.before) break;
    placements.push_back(list_ended_.Integer(0));
  }
  list_ended_.Reset();
  for (const int64_t id : placements) RETURN_IF_ERROR(delete_.Bind(id).Run());
  return absl::OkStatus();
}

absl::Status PlacementReader::Prepare() {
  ASSIGN_OR_RETURN(holding_,
                   connection_.Prepare("SELECT " COPPICE_PLACEMENT_COLUMNS R"sql( FROM placement
      WHERE state = 'held' UNION ALL SELECT )sql" COPPICE_PLACEMENT_COLUMNS R"sql( FROM placement
      WHERE state = 'started' AND is_exclusive = 1
        AND job_id IN (SELECT id FROM job WHERE state = 'active') ORDER BY id)sql"));
  ASSIGN_OR_RETURN(find_, connection_.Prepare("SELECT " COPPICE_PLACEMENT_COLUMNS
                                              " FROM placement WHERE id = ?"));
  ASSIGN_OR_RETURN(ended_,
                   connection_.Prepare("SELECT count(*) FROM placement WHERE ended_ns < ?"));
  return absl::OkStatus();
}

absl::StatusOr<PlacementRecord> PlacementReader::RecordAt(const Statement& row) const {
  PlacementRecord record;
  record.id = PlacementId(row.Integer(0));
  record.request_id = std::string(row.Text(1));
  record.request_fingerprint = static_cast<uint64_t>(row.Integer(2));
  record.name = std::string(row.Text(3));
  record.owner = std::string(row.Text(4));
  absl::StatusOr<std::vector<std::string>> nodes = ParseTexts(row.Text(5));
  absl::StatusOr<std::vector<int64_t>> permutation = ParseSigned(row.Text(7));
  absl::Status lists = nodes.status();
  lists.Update(permutation.status());
  if (!lists.ok()) {
    return Annotate(
        lists, absl::StrCat("database ", connection_.path(), ": placement ", record.id.value()));
  }
  record.nodes = *std::move(nodes);
  record.ranks_per_node = row.Word(6);
  record.permutation.assign(permutation->begin(), permutation->end());
  record.is_exclusive = row.Integer(8) != 0;
  record.term = absl::Nanoseconds(row.Integer(9));
  record.fabric_version = static_cast<uint64_t>(row.Integer(10));
  record.reason = std::string(row.Text(11));
  record.measures = std::string(row.Text(12));
  record.state = PlacementStateOf(row.Text(13));
  record.job = JobId(row.IsNull(14) ? 0 : row.Integer(14));
  record.created = row.TimeAt(15);
  record.ended = row.IsNull(16) ? absl::InfiniteFuture() : row.TimeAt(16);
  record.by_administrator = row.Integer(17) != 0;
  return record;
}

absl::StatusOr<std::vector<PlacementRecord>> PlacementReader::Holding() {
  std::vector<PlacementRecord> records;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, holding_.Step());
    if (!row) return records;
    absl::StatusOr<PlacementRecord> record = RecordAt(holding_);
    if (!record.ok()) {
      holding_.Reset();
      return record.status();
    }
    records.push_back(*std::move(record));
  }
}

absl::StatusOr<PlacementRecord> PlacementReader::Get(PlacementId id) {
  ASSIGN_OR_RETURN(const bool row, find_.Bind(id.value()).Step());
  if (!row) return NoSuchPlacement(id);
  absl::StatusOr<PlacementRecord> record = RecordAt(find_);
  find_.Reset();
  return record;
}

absl::StatusOr<int64_t> PlacementReader::Ended(absl::Time before) {
  return ended_.Bind(before).Number();
}

#undef COPPICE_PLACEMENT_COLUMNS

}  // namespace coppice
