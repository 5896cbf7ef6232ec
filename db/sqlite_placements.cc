#include "db/sqlite_placements.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/json_lists.h"
#include "db/refusals.h"

namespace coppice {
namespace {

constexpr char kPlacementColumns[] =
    "id, request_id, request_fingerprint, name, owner, nodes, ranks_per_node, permutation, "
    "is_exclusive, term_ns, fabric_version, reason, measures, state, job_id, created_ns, "
    "ended_ns, by_administrator";

constexpr const char* kPlacementStates[] = {nullptr, "held", "started", "released", "expired"};

// DATA_LOSS names the row.
absl::StatusOr<PlacementRecord> ReadPlacement(const Statement& row) {
  PlacementRecord record;
  std::string nodes, permutation, state;
  row.Read(record.id, record.request_id, record.request_fingerprint, record.name, record.owner,
           nodes, record.ranks_per_node, permutation, record.is_exclusive, record.term,
           record.fabric_version, record.reason, record.measures, state, record.job, record.created,
           record.ended, record.by_administrator);
  record.state = ValueOf<PlacementState>(kPlacementStates, state);
  absl::StatusOr<std::vector<std::string>> names = ParseTexts(nodes);
  absl::StatusOr<std::vector<uint32_t>> ranks = ParseWords(permutation);
  absl::Status lists = names.status();
  lists.Update(ranks.status());
  if (!lists.ok()) return row.Damaged(lists, absl::StrCat("placement ", record.id.value()));
  record.nodes = *std::move(names);
  record.permutation = *std::move(ranks);
  return record;
}

}  // namespace

PlacementWriter::PlacementWriter(SqliteConnection& connection)
    : insert_(connection, absl::StrCat("INSERT INTO placement (", kPlacementColumns, ") VALUES ",
                                       "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'held', NULL, ?, ",
                                       "NULL, ?)")),
      insert_node_(connection, "INSERT INTO placement_node VALUES (?, ?)"),
      end_(connection, R"sql(
      UPDATE placement SET state = ?, ended_ns = ?, job_id = nullif(?, 0)
      WHERE id = ? AND state = 'held')sql"),
      find_(connection, "SELECT id FROM placement WHERE id = ?"),
      find_request_(connection, "SELECT id FROM placement WHERE owner = ? AND request_id = ?"),
      find_node_(connection, "SELECT placement_id FROM placement_node WHERE node = ?"),
      count_ended_(connection, "SELECT count(*) FROM placement WHERE ended_ns NOT NULL"),
      list_ended_(connection, R"sql(
      SELECT id, ended_ns FROM placement WHERE ended_ns IS NOT NULL
        AND NOT (state = 'started' AND is_exclusive = 1 AND EXISTS (
          SELECT 1 FROM job WHERE job.id = placement.job_id AND job.state = 'active'))
      ORDER BY ended_ns, id LIMIT ?)sql"),
      delete_(connection, "DELETE FROM placement WHERE id = ?") {}

absl::Status PlacementWriter::Apply(const PutPlacements& put) {
  for (const PlacementRecord& placement : put.placements) RETURN_IF_ERROR(Put(placement));
  return absl::OkStatus();
}

absl::Status PlacementWriter::Put(const PlacementRecord& placement) {
  std::string nodes, permutation;
  AppendTexts(placement.nodes, nodes);
  AppendNumbers(placement.permutation, permutation);
  absl::Status status = insert_.Run(
      placement.id, Statement::Optional{placement.request_id}, placement.request_fingerprint,
      placement.name, placement.owner, nodes, placement.ranks_per_node, permutation,
      placement.is_exclusive, placement.term, placement.fabric_version, placement.reason,
      placement.measures, placement.created, placement.by_administrator);
  if (!status.ok()) return Explain(placement, std::move(status));
  for (const std::string& node : placement.nodes) {
    status = insert_node_.Run(node, placement.id);
    if (!status.ok()) return ExplainNode(node, std::move(status));
  }
  return absl::OkStatus();
}

absl::Status PlacementWriter::Explain(const PlacementRecord& placement, absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  ASSIGN_OR_RETURN(const int64_t same_id, find_.Number(placement.id));
  if (same_id != 0) return PlacementIdTaken(placement.id);
  ASSIGN_OR_RETURN(const int64_t same_request,
                   find_request_.Number(placement.owner, placement.request_id));
  if (same_request != 0) {
    return PlacementRequestTaken(placement.request_id, PlacementId(same_request));
  }
  return failure;
}

absl::Status PlacementWriter::ExplainNode(const std::string& node, absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  ASSIGN_OR_RETURN(const int64_t holder, find_node_.Number(node));
  return holder == 0 ? failure : NodeHeld(node, PlacementId(holder));
}

absl::Status PlacementWriter::End(PlacementId id, PlacementState state, absl::Time time,
                                  JobId job) {
  RETURN_IF_ERROR(end_.Run(NameOf(kPlacementStates, state), time, job, id));
  return end_.changes() == 0 ? NoHeldPlacement(id) : absl::OkStatus();
}

absl::Status PlacementWriter::Apply(const PrunePlacements& prune) {
  ASSIGN_OR_RETURN(const int64_t ended, count_ended_.Number());
  std::vector<int64_t> placements;
  list_ended_.Bind(prune.rows);
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, list_ended_.Step());
    if (!row) break;
    const bool is_kept = static_cast<int64_t>(placements.size()) >= ended - prune.keep;
    if (is_kept && list_ended_.TimeAt(1) >= prune.before) break;
    placements.push_back(list_ended_.Integer(0));
  }
  list_ended_.Reset();
  for (const int64_t id : placements) RETURN_IF_ERROR(delete_.Run(id));
  return absl::OkStatus();
}

PlacementReader::PlacementReader(SqliteConnection& connection)
    : holding_(connection, absl::StrCat("SELECT ", kPlacementColumns, R"sql( FROM placement
      WHERE state = 'held' UNION ALL SELECT )sql",
                                        kPlacementColumns, R"sql( FROM placement
      WHERE state = 'started' AND is_exclusive = 1
        AND job_id IN (SELECT id FROM job WHERE state = 'active') ORDER BY id)sql")),
      find_(connection, absl::StrCat("SELECT ", kPlacementColumns, " FROM placement WHERE id = ?")),
      ended_(connection, "SELECT count(*) FROM placement WHERE ended_ns < ?") {}

absl::Status PlacementReader::Load(StoredState& state) {
  return holding_.ForEach([&](const Statement& row) -> absl::Status {
    ASSIGN_OR_RETURN(state.placements.emplace_back(), ReadPlacement(row));
    return absl::OkStatus();
  });
}

absl::StatusOr<PlacementRecord> PlacementReader::Get(PlacementId id) {
  ASSIGN_OR_RETURN(const bool row, find_.Step(id));
  if (!row) return NoSuchPlacement(id);
  absl::StatusOr<PlacementRecord> record = ReadPlacement(find_);
  find_.Reset();
  return record;
}

absl::StatusOr<int64_t> PlacementReader::Ended(absl::Time before) { return ended_.Number(before); }

OrderWriter::OrderWriter(SqliteConnection& connection)
    : find_active_job_(connection, "SELECT 1 FROM job WHERE id = ? AND state = 'active'"),
      // From the index alone: the rows are long.
      count_others_(connection, R"sql(
      SELECT ifnull(sum(position_count), 0) FROM job_order WHERE job_id <> ?)sql"),
      put_(connection, R"sql(
      INSERT INTO job_order (job_id, position_count, note, created_ns, positions)
      VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (job_id) DO UPDATE SET position_count = excluded.position_count,
          note = excluded.note, created_ns = excluded.created_ns,
          positions = excluded.positions)sql") {}

absl::Status OrderWriter::Apply(const PutOrder& put) {
  const OrderRecord& order = put.order;
  ASSIGN_OR_RETURN(const int64_t active, find_active_job_.Number(order.job));
  if (active == 0) return OrderOfNoActiveJob(order.job);
  ASSIGN_OR_RETURN(const int64_t others, count_others_.Number(order.job));
  const auto count = static_cast<int64_t>(order.positions.size());
  if (count > put.max_positions - others) return NoRoomForOrder(put, others);
  std::string positions;
  AppendNumbers(order.positions, positions);
  return put_.Run(order.job, count, order.note, order.created, positions);
}

OrderReader::OrderReader(SqliteConnection& connection)
    : find_(connection, R"sql(
      SELECT job_id, position_count, note, created_ns, positions FROM job_order
      WHERE job_id = ?)sql") {}

absl::StatusOr<OrderRecord> OrderReader::Get(JobId job) {
  ASSIGN_OR_RETURN(const bool row, find_.Step(job));
  if (!row) return NoSuchOrder(job);
  OrderRecord record;
  size_t count = 0;
  std::string text;
  find_.Read(record.job, count, record.note, record.created, text);
  find_.Reset();
  absl::StatusOr<std::vector<uint64_t>> positions = ParseUnsigned(text);
  absl::Status damage = positions.status();
  if (damage.ok() && positions->size() != count) {
    damage =
        absl::DataLossError(absl::StrCat(positions->size(), " positions where there were ", count));
  }
  for (const uint64_t position : positions.ok() ? *positions : std::vector<uint64_t>()) {
    if (position <= UINT32_MAX) continue;
    damage.Update(absl::DataLossError(absl::StrCat("position ", position, " is beyond all ranks")));
  }
  if (!damage.ok()) return find_.Damaged(damage, absl::StrCat("order of job ", job.value()));
  record.positions.assign(positions->begin(), positions->end());
  return record;
}

PatternWriter::PatternWriter(SqliteConnection& connection)
    : insert_part_(connection, "INSERT OR IGNORE INTO pattern_part VALUES (?, ?, ?)"),
      count_parts_(connection, R"sql(
      SELECT count(*), ifnull(max(part) + 1, 0) FROM pattern_part WHERE pattern_id = ?)sql"),
      find_(connection, "SELECT 1 FROM pattern WHERE id = ?"),
      drop_parts_(connection, "DELETE FROM pattern_part WHERE pattern_id = ?"),
      drop_name_(connection, R"sql(
      DELETE FROM pattern WHERE name = ?1 AND owner = ?2 AND by_administrator = 0)sql"),
      drop_shared_(connection, "DELETE FROM pattern WHERE name = ? AND by_administrator = 1"),
      insert_(connection, "INSERT INTO pattern VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") {}

absl::Status PatternWriter::CheckFree(int64_t id) {
  ASSIGN_OR_RETURN(const int64_t taken, find_.Number(id));
  return taken != 0 ? PatternIdTaken(id) : absl::OkStatus();
}

absl::Status PatternWriter::Apply(const PutPatternPart& put) {
  RETURN_IF_ERROR(CheckFree(put.pattern));
  RETURN_IF_ERROR(insert_part_.Run(put.pattern, put.part, Statement::Blob{put.data}));
  return insert_part_.changes() == 0 ? PatternPartTaken(put.pattern, put.part) : absl::OkStatus();
}

absl::Status PatternWriter::DropName(const std::string& name, const std::string& owner,
                                     bool by_administrator) {
  return by_administrator ? drop_shared_.Run(name) : drop_name_.Run(name, owner);
}

absl::Status PatternWriter::Apply(const PutPattern& put) {
  const PatternRecord& p = put.pattern;
  RETURN_IF_ERROR(CheckFree(p.id));
  uint64_t count = 0, end = 0;
  RETURN_IF_ERROR(count_parts_.Step(p.id).status());
  count_parts_.Read(count, end);
  count_parts_.Reset();
  if (count != put.parts || end != count) return PatternPartsMissing(p, put.parts, count);
  RETURN_IF_ERROR(DropName(p.name, p.owner, p.by_administrator));
  return insert_.Run(p.id, p.name, p.owner, p.rank_count, p.pair_count, p.total_bytes,
                     p.total_messages, p.created, p.stored_bytes, p.by_administrator);
}

absl::Status PatternWriter::Apply(const DropPatternParts& drop) {
  RETURN_IF_ERROR(CheckFree(drop.pattern));
  return drop_parts_.Run(drop.pattern);
}

absl::Status PatternWriter::Apply(const DropPattern& drop) {
  RETURN_IF_ERROR(DropName(drop.name, drop.owner, drop.by_administrator));
  return drop_name_.changes() == 0 ? NoSuchPattern(drop.name) : absl::OkStatus();
}

PatternReader::PatternReader(SqliteConnection& connection)
    : list_(connection, R"sql(
      SELECT id, name, owner, rank_count, pair_count, total_bytes, total_messages, created_ns,
             stored_bytes, by_administrator
      FROM pattern ORDER BY name, owner, by_administrator)sql"),
      find_(connection, "SELECT 1 FROM pattern WHERE id = ?"),
      parts_(connection, "SELECT data FROM pattern_part WHERE pattern_id = ? ORDER BY part") {}

absl::StatusOr<std::vector<PatternRecord>> PatternReader::List() {
  return list_.List<PatternRecord>([](const Statement& row, PatternRecord& p) {
    row.Read(p.id, p.name, p.owner, p.rank_count, p.pair_count, p.total_bytes, p.total_messages,
             p.created, p.stored_bytes, p.by_administrator);
  });
}

absl::StatusOr<std::string> PatternReader::Data(int64_t id) {
  ASSIGN_OR_RETURN(const int64_t is_there, find_.Number(id));
  if (is_there == 0) return NoSuchPatternId(id);
  std::string data;
  RETURN_IF_ERROR(
      parts_.Bind(id).ForEach([&](const Statement& row) { data.append(row.Bytes(0)); }));
  return data;
}

}  // namespace coppice
