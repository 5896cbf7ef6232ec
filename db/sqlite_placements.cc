// Placements, orders of jobs' ranks, and communication patterns.

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/json_lists.h"
#include "db/sqlite_tables.h"

namespace coppice {
namespace {

constexpr char kPlacementColumns[] = R"sql(
    id, request_id, request_fingerprint, name, owner, nodes, ranks_per_node, permutation,
    is_exclusive, term_ns, fabric_version, reason, measures, state, job_id, created_ns, ended_ns,
    by_administrator, partition, account)sql";

constexpr const char* kPlacementStates[] = {nullptr, "held", "started", "released", "expired"};

// DATA_LOSS names the row.
absl::Status FillPlacement(const Statement& row, PlacementRecord& record) {
  std::string nodes, permutation, measures, state;
  row.Read(record.id, record.request_id, record.request_fingerprint, record.name, record.owner,
           nodes, record.ranks_per_node, permutation, record.is_exclusive, record.term,
           record.fabric_version, record.reason, measures, state, record.job, record.created,
           record.ended, record.by_administrator, record.partition, record.account);
  ParseMeasures(measures, record);
  record.state = ValueOf<PlacementState>(kPlacementStates, state);
  absl::StatusOr<std::vector<std::string>> names = ParseTexts(nodes);
  absl::StatusOr<std::vector<uint32_t>> ranks = ParseNumbers<uint32_t>(permutation);
  absl::Status lists = names.status();
  lists.Update(ranks.status());
  if (!lists.ok()) return row.Damaged(lists, absl::StrCat("placement ", record.id.value()));
  record.nodes = *std::move(names);
  record.permutation = *std::move(ranks);
  return absl::OkStatus();
}

// Words for a constraint that `failure` reports; a storage failure stays as it is.
absl::Status ExplainPlacement(SqliteConnection& db, const PlacementRecord& placement,
                              absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  ASSIGN_OR_RETURN(const int64_t same_id,
                   db.Sql("SELECT id FROM placement WHERE id = ?").Number(placement.id));
  if (same_id != 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("placement ", same_id, " exists: make it under the next unused id"));
  }
  ASSIGN_OR_RETURN(const int64_t holder,
                   db.Sql("SELECT id FROM placement WHERE owner = ? AND request_id = ?")
                       .Number(placement.owner, placement.request_id));
  if (holder == 0) return failure;
  return absl::AlreadyExistsError(absl::StrCat("request id \"", placement.request_id,
                                               "\" belongs to placement ", holder,
                                               ": use a new request id"));
}

absl::Status HoldNode(SqliteConnection& db, const std::string& node, PlacementId placement) {
  absl::Status failure = db.Sql("INSERT INTO placement_node VALUES (?, ?)").Run(node, placement);
  if (!absl::IsInternal(failure)) return failure;
  ASSIGN_OR_RETURN(const int64_t holder,
                   db.Sql("SELECT placement_id FROM placement_node WHERE node = ?").Number(node));
  if (holder == 0) return failure;
  return absl::FailedPreconditionError(absl::StrCat("node ", node, " is held by placement ", holder,
                                                    ": choose others or release that"));
}

absl::Status PutPlacement(SqliteConnection& db, const PlacementRecord& placement) {
  std::string nodes, permutation;
  AppendTexts(placement.nodes, nodes);
  AppendNumbers(placement.permutation, permutation);
  absl::Status status =
      db.Sql(
            absl::StrCat("INSERT INTO placement (", kPlacementColumns, ") VALUES ",
                         "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'held', NULL, ?, NULL, ?, ?, ?)"))
          .Run(placement.id, Statement::Optional{placement.request_id},
               placement.request_fingerprint, placement.name, placement.owner, nodes,
               placement.ranks_per_node, permutation, placement.is_exclusive, placement.term,
               placement.fabric_version, placement.reason, MeasuresText(placement),
               placement.created, placement.by_administrator, placement.partition,
               placement.account);
  if (!status.ok()) return ExplainPlacement(db, placement, std::move(status));
  for (const std::string& node : placement.nodes) {
    RETURN_IF_ERROR(HoldNode(db, node, placement.id));
  }
  return absl::OkStatus();
}

// `job`: which took the nodes; 0: none.
absl::Status EndHeld(SqliteConnection& db, PlacementId id, PlacementState state, absl::Time time,
                     JobId job) {
  RETURN_IF_ERROR(db.Sql(R"sql(
      UPDATE placement SET state = ?, ended_ns = ?, job_id = nullif(?, 0)
      WHERE id = ? AND state = 'held')sql")
                      .Run(NameOf(kPlacementStates, state), time, job, id));
  if (db.changes() > 0) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("no held placement ", id.value(), ": it was never made or is over"));
}

// ALREADY_EXISTS: there is a pattern of that number.
absl::Status CheckPatternIdFree(SqliteConnection& db, int64_t id) {
  ASSIGN_OR_RETURN(const int64_t taken, db.Sql("SELECT 1 FROM pattern WHERE id = ?").Number(id));
  if (taken == 0) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("pattern ", id, " exists; take an id above all that were ever given"));
}

absl::Status DropPatternOf(SqliteConnection& db, const std::string& name, const std::string& owner,
                           bool by_administrator) {
  if (by_administrator) {
    return db.Sql("DELETE FROM pattern WHERE name = ? AND by_administrator = 1").Run(name);
  }
  return db.Sql("DELETE FROM pattern WHERE name = ? AND owner = ? AND by_administrator = 0")
      .Run(name, owner);
}

}  // namespace

absl::Status Apply(SqliteConnection& db, const PutPlacements& put) {
  for (const PlacementRecord& placement : put.placements)
    RETURN_IF_ERROR(PutPlacement(db, placement));
  return absl::OkStatus();
}

absl::Status Apply(SqliteConnection& db, const EndPlacement& end) {
  return EndHeld(db, end.placement, end.state, end.time, JobId());
}

absl::Status Apply(SqliteConnection& db, const StartPlacement& start) {
  return EndHeld(db, start.placement, PlacementState::kStarted, start.job->created, start.job->id);
}

absl::Status Apply(SqliteConnection& db, const PrunePlacements& prune) {
  ASSIGN_OR_RETURN(const int64_t ended,
                   db.Sql("SELECT count(*) FROM placement WHERE ended_ns NOT NULL").Number());
  Statement& list = db.Sql(R"sql(
      SELECT id, ended_ns FROM placement WHERE ended_ns IS NOT NULL
        AND NOT (state = 'started' AND is_exclusive = 1 AND EXISTS (
          SELECT 1 FROM job WHERE job.id = placement.job_id AND job.state = 'active'))
      ORDER BY ended_ns, id LIMIT ?)sql");
  ASSIGN_OR_RETURN(const auto surplus,
                   FindSurplus(list.Bind(prune.rows), ended - prune.keep, prune.before));
  for (const int64_t id : surplus) {
    RETURN_IF_ERROR(db.Sql("DELETE FROM placement WHERE id = ?").Run(id));
  }
  return absl::OkStatus();
}

absl::Status LoadPlacements(SqliteConnection& db, StoredState& state) {
  ASSIGN_OR_RETURN(state.placements,
                   db.Sql(absl::StrCat("SELECT ", kPlacementColumns, R"sql( FROM placement
      WHERE state = 'held' UNION ALL SELECT )sql",
                                       kPlacementColumns, R"sql( FROM placement
      WHERE state = 'started' AND is_exclusive = 1
        AND job_id IN (SELECT id FROM job WHERE state = 'active') ORDER BY id)sql"))
                       .List<PlacementRecord>(FillPlacement));
  return absl::OkStatus();
}

absl::StatusOr<PlacementRecord> ReadPlacement(SqliteConnection& db, PlacementId id) {
  Statement& find =
      db.Sql(absl::StrCat("SELECT ", kPlacementColumns, " FROM placement WHERE id = ?"));
  ASSIGN_OR_RETURN(auto found, find.Bind(id).List<PlacementRecord>(FillPlacement));
  if (!found.empty()) return std::move(found.front());
  return absl::NotFoundError(absl::StrCat(
      "placement ", id.value(), " was never made, or it ended so long ago that it is forgotten"));
}

absl::StatusOr<int64_t> CountEndedPlacements(SqliteConnection& db, absl::Time before) {
  return db.Sql("SELECT count(*) FROM placement WHERE ended_ns < ?").Number(before);
}

// --- Orders of jobs' ranks: a trigger drops one with the end of its job ---

absl::Status Apply(SqliteConnection& db, const PutOrder& put) {
  const OrderRecord& order = put.order;
  ASSIGN_OR_RETURN(const int64_t active, db.Sql(kFindActiveJob).Number(order.job));
  if (active == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", order.job.value(), " is not active: orders are kept for active jobs only"));
  }
  // From the index alone: the rows are long.
  ASSIGN_OR_RETURN(const int64_t others, db.Sql(R"sql(
      SELECT ifnull(sum(position_count), 0) FROM job_order WHERE job_id <> ?)sql")
                                             .Number(order.job));
  const auto count = static_cast<int64_t>(order.positions.size());
  if (count > put.max_positions - others) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the order of job ", order.job.value(), " has ", count, " positions, and those of other ",
        "jobs hold ", others, " of the ", put.max_positions, " for all; end jobs that are done"));
  }
  std::string positions;
  AppendNumbers(order.positions, positions);
  return db
      .Sql(R"sql(
      INSERT INTO job_order (job_id, position_count, note, created_ns, positions)
      VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (job_id) DO UPDATE SET position_count = excluded.position_count,
          note = excluded.note, created_ns = excluded.created_ns,
          positions = excluded.positions)sql")
      .Run(order.job, count, order.note, order.created, positions);
}

absl::StatusOr<OrderRecord> ReadOrder(SqliteConnection& db, JobId job) {
  Statement& find = db.Sql(R"sql(
      SELECT job_id, position_count, note, created_ns, positions FROM job_order
      WHERE job_id = ?)sql");
  ASSIGN_OR_RETURN(const bool row, find.Step(job));
  if (!row) return absl::NotFoundError(absl::StrCat("no order is kept for job ", job.value()));
  OrderRecord record;
  size_t count = 0;
  std::string text;
  find.Read(record.job, count, record.note, record.created, text);
  find.Reset();
  const absl::StatusOr<std::vector<uint64_t>> positions = ParseNumbers<uint64_t>(text);
  absl::Status damage = positions.status();
  if (damage.ok() && positions->size() != count) {
    damage =
        absl::DataLossError(absl::StrCat(positions->size(), " positions where there were ", count));
  }
  for (size_t i = 0; damage.ok() && i < count; ++i) {
    const uint64_t position = (*positions)[i];
    record.positions.push_back(static_cast<uint32_t>(position));
    if (position <= UINT32_MAX) continue;
    damage = absl::DataLossError(absl::StrCat("position ", position, " is beyond all ranks"));
  }
  if (damage.ok()) return record;
  return find.Damaged(damage, absl::StrCat("order of job ", job.value()));
}

// --- Communication patterns ---

absl::Status Apply(SqliteConnection& db, const PutPatternPart& put) {
  RETURN_IF_ERROR(CheckPatternIdFree(db, put.pattern));
  RETURN_IF_ERROR(db.Sql("INSERT OR IGNORE INTO pattern_part VALUES (?, ?, ?)")
                      .Run(put.pattern, put.part, Statement::Blob{put.data}));
  if (db.changes() > 0) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("pattern ", put.pattern, ": part ", put.part,
                                               " is there; number parts from 0, each once"));
}

absl::Status Apply(SqliteConnection& db, const PutPattern& put) {
  const PatternRecord& p = put.pattern;
  RETURN_IF_ERROR(CheckPatternIdFree(db, p.id));
  Statement& parts = db.Sql(R"sql(
      SELECT count(*), ifnull(max(part) + 1, 0) FROM pattern_part WHERE pattern_id = ?)sql");
  uint64_t count = 0, end = 0;
  RETURN_IF_ERROR(parts.Bind(p.id).ForEach([&](const Statement& row) { row.Read(count, end); }));
  if (count != put.parts || end != count) {
    return absl::FailedPreconditionError(
        absl::StrCat("pattern ", p.id, " \"", p.name, "\": ", count, " of its parts 0 to ",
                     int64_t{put.parts} - 1, " are there; put all of them first"));
  }
  RETURN_IF_ERROR(DropPatternOf(db, p.name, p.owner, p.by_administrator));
  return db.Sql("INSERT INTO pattern VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .Run(p.id, p.name, p.owner, p.rank_count, p.pair_count, p.total_bytes, p.total_messages,
           p.created, p.stored_bytes, p.by_administrator, p.account);
}

absl::Status Apply(SqliteConnection& db, const DropPatternParts& drop) {
  RETURN_IF_ERROR(CheckPatternIdFree(db, drop.pattern));
  return db.Sql("DELETE FROM pattern_part WHERE pattern_id = ?").Run(drop.pattern);
}

absl::Status Apply(SqliteConnection& db, const DropPattern& drop) {
  RETURN_IF_ERROR(DropPatternOf(db, drop.name, drop.owner, drop.by_administrator));
  if (db.changes() > 0) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("no pattern is stored as ", drop.name));
}

absl::StatusOr<std::vector<PatternRecord>> ListPatterns(SqliteConnection& db) {
  return db
      .Sql(R"sql(
      SELECT id, name, owner, rank_count, pair_count, total_bytes, total_messages, created_ns,
             stored_bytes, by_administrator, account
      FROM pattern ORDER BY name, owner, by_administrator)sql")
      .List<PatternRecord>([](const Statement& row, PatternRecord& p) {
        row.Read(p.id, p.name, p.owner, p.rank_count, p.pair_count, p.total_bytes, p.total_messages,
                 p.created, p.stored_bytes, p.by_administrator, p.account);
      });
}

absl::StatusOr<std::string> ReadPatternData(SqliteConnection& db, int64_t id) {
  ASSIGN_OR_RETURN(const int64_t is_there, db.Sql("SELECT 1 FROM pattern WHERE id = ?").Number(id));
  if (is_there == 0) return absl::NotFoundError(absl::StrCat("no pattern ", id, " is stored"));
  std::string data;
  RETURN_IF_ERROR(db.Sql("SELECT data FROM pattern_part WHERE pattern_id = ? ORDER BY part")
                      .Bind(id)
                      .ForEach([&](const Statement& row) { data.append(row.Bytes(0)); }));
  return data;
}

}  // namespace coppice
