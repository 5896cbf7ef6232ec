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

absl::Status PlacementWriter::Apply(const PutPlacements& put) {
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

absl::Status PlacementWriter::Apply(const EndPlacement& end) {
  end_.Bind(ToString(end.state)).Bind(end.time).Bind(int64_t{0});
  RETURN_IF_ERROR(end_.Bind(end.placement.value()).Run());
  return connection_.changes() == 0 ? NoHeldPlacement(end.placement) : absl::OkStatus();
}

absl::Status PlacementWriter::Start(PlacementId id, JobId job, absl::Time time) {
  end_.Bind(ToString(PlacementState::kStarted)).Bind(time).Bind(job.value());
  RETURN_IF_ERROR(end_.Bind(id.value()).Run());
  return connection_.changes() == 0 ? NoHeldPlacement(id) : absl::OkStatus();
}

absl::Status PlacementWriter::Apply(const PrunePlacements& prune) {
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

absl::Status PlacementReader::Load(StoredState& state) {
  return holding_.ForEach([&](const Statement& row) -> absl::Status {
    ASSIGN_OR_RETURN(state.placements.emplace_back(), RecordAt(row));
    return absl::OkStatus();
  });
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

absl::Status OrderWriter::Prepare() {
  ASSIGN_OR_RETURN(find_active_job_,
                   connection_.Prepare("SELECT 1 FROM job WHERE id = ? AND state = 'active'"));
  // From the index alone: the rows are long.
  ASSIGN_OR_RETURN(count_others_, connection_.Prepare(R"sql(
      SELECT ifnull(sum(position_count), 0) FROM job_order WHERE job_id <> ?)sql"));
  ASSIGN_OR_RETURN(put_, connection_.Prepare(R"sql(
      INSERT INTO job_order (job_id, position_count, note, created_ns, positions)
      VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (job_id) DO UPDATE SET position_count = excluded.position_count,
          note = excluded.note, created_ns = excluded.created_ns,
          positions = excluded.positions)sql"));
  return absl::OkStatus();
}

absl::Status OrderWriter::Apply(const PutOrder& put) {
  const OrderRecord& order = put.order;
  ASSIGN_OR_RETURN(const int64_t active, find_active_job_.Bind(order.job.value()).Number());
  if (active == 0) return OrderOfNoActiveJob(order.job);
  ASSIGN_OR_RETURN(const int64_t others, count_others_.Bind(order.job.value()).Number());
  const auto count = static_cast<int64_t>(order.positions.size());
  if (count > put.max_positions - others) return NoRoomForOrder(put, others);
  std::string positions;
  AppendNumbers(std::vector<int64_t>(order.positions.begin(), order.positions.end()), positions);
  put_.Bind(order.job.value()).Bind(count).Bind(order.note).Bind(order.created);
  return put_.Bind(positions).Run();
}

absl::Status OrderReader::Prepare() {
  ASSIGN_OR_RETURN(find_, connection_.Prepare(R"sql(
      SELECT job_id, position_count, note, created_ns, positions FROM job_order
      WHERE job_id = ?)sql"));
  return absl::OkStatus();
}

absl::StatusOr<OrderRecord> OrderReader::RecordAt(const Statement& row) const {
  OrderRecord record;
  record.job = JobId(row.Integer(0));
  record.note = std::string(row.Text(2));
  record.created = row.TimeAt(3);
  absl::StatusOr<std::vector<uint64_t>> positions = ParseUnsigned(row.Text(4));
  absl::Status damage = positions.status();
  if (damage.ok() && static_cast<int64_t>(positions->size()) != row.Integer(1)) {
    damage = absl::DataLossError(
        absl::StrCat(positions->size(), " positions where there were ", row.Integer(1)));
  }
  if (damage.ok()) {
    record.positions.reserve(positions->size());
    for (const uint64_t position : *positions) {
      if (position > UINT32_MAX) {
        damage = absl::DataLossError(absl::StrCat("position ", position, " is beyond all ranks"));
        break;
      }
      record.positions.push_back(static_cast<uint32_t>(position));
    }
  }
  if (damage.ok()) return record;
  return Annotate(
      damage, absl::StrCat("database ", connection_.path(), ": order of job ", record.job.value()));
}

absl::StatusOr<OrderRecord> OrderReader::Get(JobId job) {
  ASSIGN_OR_RETURN(const bool row, find_.Bind(job.value()).Step());
  if (!row) return NoSuchOrder(job);
  absl::StatusOr<OrderRecord> record = RecordAt(find_);
  find_.Reset();
  return record;
}

absl::Status PatternWriter::Prepare() {
  RETURN_IF_ERROR(connection_.Execute(
      "DELETE FROM pattern_part WHERE pattern_id NOT IN (SELECT id FROM pattern)"));
  ASSIGN_OR_RETURN(insert_part_,
                   connection_.Prepare("INSERT OR IGNORE INTO pattern_part VALUES (?, ?, ?)"));
  ASSIGN_OR_RETURN(count_parts_, connection_.Prepare(R"sql(
      SELECT count(*), ifnull(max(part) + 1, 0) FROM pattern_part WHERE pattern_id = ?)sql"));
  ASSIGN_OR_RETURN(find_, connection_.Prepare("SELECT 1 FROM pattern WHERE id = ?"));
  ASSIGN_OR_RETURN(drop_parts_,
                   connection_.Prepare("DELETE FROM pattern_part WHERE pattern_id = ?"));
  ASSIGN_OR_RETURN(drop_name_, connection_.Prepare(R"sql(
      DELETE FROM pattern WHERE name = ?1 AND owner = ?2 AND by_administrator = 0)sql"));
  ASSIGN_OR_RETURN(drop_shared_, connection_.Prepare(R"sql(
      DELETE FROM pattern WHERE name = ? AND by_administrator = 1)sql"));
  ASSIGN_OR_RETURN(
      insert_, connection_.Prepare("INSERT INTO pattern VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  return absl::OkStatus();
}

absl::StatusOr<bool> PatternWriter::IsThere(int64_t id) {
  find_.Bind(id);
  ASSIGN_OR_RETURN(const bool row, find_.Step());
  find_.Reset();
  return row;
}

absl::Status PatternWriter::Apply(const PutPatternPart& put) {
  ASSIGN_OR_RETURN(const bool taken, IsThere(put.pattern));
  if (taken) return PatternIdTaken(put.pattern);
  RETURN_IF_ERROR(insert_part_.Bind(put.pattern).Bind(int64_t{put.part}).BindBlob(put.data).Run());
  return connection_.changes() == 0 ? PatternPartTaken(put.pattern, put.part) : absl::OkStatus();
}

absl::Status PatternWriter::DropName(const std::string& name, const std::string& owner,
                                     bool by_administrator) {
  if (by_administrator) return drop_shared_.Bind(name).Run();
  return drop_name_.Bind(name).Bind(owner).Run();
}

absl::Status PatternWriter::Apply(const PutPattern& put) {
  const PatternRecord& p = put.pattern;
  ASSIGN_OR_RETURN(const bool taken, IsThere(p.id));
  if (taken) return PatternIdTaken(p.id);
  count_parts_.Bind(p.id);
  RETURN_IF_ERROR(count_parts_.Step().status());
  const int64_t count = count_parts_.Integer(0), end = count_parts_.Integer(1);
  count_parts_.Reset();
  if (count != int64_t{put.parts} || end != count) {
    return PatternPartsMissing(p, put.parts, static_cast<uint64_t>(count));
  }
  RETURN_IF_ERROR(DropName(p.name, p.owner, p.by_administrator));
  insert_.Bind(p.id).Bind(p.name).Bind(p.owner).Bind(int64_t{p.rank_count});
  insert_.Bind(static_cast<int64_t>(p.pair_count)).Bind(p.total_bytes).Bind(p.total_messages);
  insert_.Bind(p.created).Bind(static_cast<int64_t>(p.stored_bytes));
  return insert_.Bind(int64_t{p.by_administrator}).Run();
}

absl::Status PatternWriter::Apply(const DropPatternParts& drop) {
  ASSIGN_OR_RETURN(const bool taken, IsThere(drop.pattern));
  if (taken) return PatternIdTaken(drop.pattern);
  return drop_parts_.Bind(drop.pattern).Run();
}

absl::Status PatternWriter::Apply(const DropPattern& drop) {
  RETURN_IF_ERROR(DropName(drop.name, drop.owner, drop.by_administrator));
  return connection_.changes() == 0 ? NoSuchPattern(drop.name) : absl::OkStatus();
}

absl::Status PatternReader::Prepare() {
  ASSIGN_OR_RETURN(list_, connection_.Prepare(R"sql(
      SELECT id, name, owner, rank_count, pair_count, total_bytes, total_messages, created_ns,
             stored_bytes, by_administrator
      FROM pattern ORDER BY name, owner, by_administrator)sql"));
  ASSIGN_OR_RETURN(find_, connection_.Prepare("SELECT stored_bytes FROM pattern WHERE id = ?"));
  ASSIGN_OR_RETURN(parts_, connection_.Prepare(
                               "SELECT data FROM pattern_part WHERE pattern_id = ? ORDER BY part"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PatternRecord>> PatternReader::List() {
  std::vector<PatternRecord> patterns;
  RETURN_IF_ERROR(list_.ForEach([&](const Statement& row) {
    PatternRecord& pattern = patterns.emplace_back();
    pattern.id = row.Integer(0);
    pattern.name = std::string(row.Text(1));
    pattern.owner = std::string(row.Text(2));
    pattern.rank_count = row.Word(3);
    pattern.pair_count = static_cast<uint64_t>(row.Integer(4));
    pattern.total_bytes = row.Real(5);
    pattern.total_messages = row.Real(6);
    pattern.created = row.TimeAt(7);
    pattern.stored_bytes = static_cast<uint64_t>(row.Integer(8));
    pattern.by_administrator = row.Integer(9) != 0;
  }));
  return patterns;
}

absl::StatusOr<std::string> PatternReader::Data(int64_t id) {
  find_.Bind(id);
  ASSIGN_OR_RETURN(const bool there, find_.Step());
  find_.Reset();
  if (!there) return NoSuchPatternId(id);
  std::string data;
  parts_.Bind(id);
  RETURN_IF_ERROR(parts_.ForEach([&](const Statement& row) { data.append(row.Blob(0)); }));
  return data;
}

}  // namespace coppice
