// Trees and the entries that they take. The hot path of the store: a grant is one row of `tree`,
// with its nodes as JSON text, and one row of `tree_switch` per serving switch, which a trigger
// admits if the switch has an entry left; a release is one DELETE, whose trigger frees the entries.
//
// A tree that is planned anew keeps its row: setting its nodes to none frees its entries by a
// trigger, and the second update fills the row again. README.md says why OR FAIL.
#include <optional>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/json_lists.h"
#include "db/sqlite_tables.h"

namespace coppice {
namespace {

constexpr char kEntriesOf[] = R"sql(
    SELECT guid, entries_total, entries_reserved, degree_limit,
           (SELECT count(*) FROM tree_switch s WHERE s.guid = c.guid)
    FROM switch_capability c )sql";

void ReadEntryUse(const Statement& row, EntryUse& use) {
  row.Read(use.capability.guid, use.capability.entries_total, use.capability.entries_reserved,
           use.capability.degree_limit, use.entries_taken);
}

// Behind the columns that ReadTree reads as they come.
constexpr int kKeyColumn = 24;

// NULL if it has none.
Statement::OptionalBlob KeyOf(const TreeRecord& tree) { return {tree.carriage.key}; }

// The lists of a tree's row.
struct TreeLists {
  explicit TreeLists(const TreeRecord& tree)
      : operation(ToString(tree.spec.operation)),
        sizes(SizesText(tree.spec.sizes)),
        spec(SpecText(tree)),
        alternatives(AlternativesText(tree.alternatives)) {
    AppendTreeNodes(tree, nodes);
    AppendForest(tree.forest, forest);
    AppendNumbers(tree.links, links);
    AppendNumbers(tree.physical, physical);
  }
  std::string operation, sizes, spec, alternatives, nodes, forest, links, physical;
};

// Words for a constraint that `failure` reports; a storage failure stays as it is.
absl::Status ExplainTree(SqliteConnection& db, const TreeRecord& tree, absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  const int64_t id = tree.id.value(), job = tree.job.value();
  ASSIGN_OR_RETURN(const int64_t active, db.Sql(kFindActiveJob).Number(job));
  if (active == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job, " is not active: register a job before asking for trees"));
  }
  ASSIGN_OR_RETURN(const int64_t same_id, db.Sql("SELECT id FROM tree WHERE id = ?").Number(id));
  if (same_id != 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("tree ", id, " exists: grant under the next unused id"));
  }
  ASSIGN_OR_RETURN(const int64_t floor,
                   db.Sql("SELECT value FROM setting WHERE name = 'tree_id_floor'").Number());
  if (id <= floor) {
    return absl::AlreadyExistsError(
        absl::StrCat("tree id ", id, " belongs to an earlier run: grant under ids above ", floor));
  }
  ASSIGN_OR_RETURN(const int64_t holder,
                   db.Sql("SELECT id FROM tree WHERE job_id = ? AND request_id = ?")
                       .Number(job, tree.request_id));
  if (holder == 0) return failure;
  return absl::AlreadyExistsError(absl::StrCat("request id \"", tree.request_id, "\" of job ", job,
                                               " belongs to tree ", holder,
                                               ": use a new request id"));
}

absl::Status ExplainSwitch(SqliteConnection& db, Guid guid, absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  Statement& find = db.Sql(absl::StrCat(kEntriesOf, "WHERE guid = ?"));
  ASSIGN_OR_RETURN(const bool known, find.Step(guid));
  if (!known) {
    return absl::AbortedError(absl::StrCat("switch ", ToString(guid),
                                           " has no aggregation capability: it left the fabric, or "
                                           "lost it to other rules, after the tree "
                                           "was planned; plan again"));
  }
  EntryUse use;
  ReadEntryUse(find, use);
  find.Reset();
  return absl::ResourceExhaustedError(absl::StrCat(
      "switch ", ToString(guid), " has no entry left: ", use.entries_taken, " taken and ",
      use.capability.entries_reserved, " reserved of ", use.capability.entries_total,
      ": release a tree that uses it or plan around it"));
}

absl::Status InsertSwitches(SqliteConnection& db, const TreeRecord& tree) {
  Statement& insert = db.Sql("INSERT OR FAIL INTO tree_switch VALUES (?, ?, ?, ?)");
  int64_t node = static_cast<int64_t>(tree.ranks.size());
  for (const TreeSwitchRecord& serving : tree.switches) {
    absl::Status status = insert.Run(tree.id, node++, serving.guid, serving.children);
    if (!status.ok()) return ExplainSwitch(db, serving.guid, std::move(status));
  }
  return absl::OkStatus();
}

absl::Status Grant(SqliteConnection& db, const TreeRecord& tree) {
  const TreeLists lists(tree);
  absl::Status status =
      db.Sql(R"sql(
      INSERT OR FAIL INTO tree (
          id, job_id, request_id, request_fingerprint, fabric_version, revision, type, builder,
          width, height, radius, operation, sizes, aggregate_us, distribute_us, total_us, reason,
          alternatives, created_ns, nodes, links, physical, demands, forest, install_key,
          segment_bytes, segment_window)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))sql")
          .Run(tree.id, tree.job, Statement::Optional{tree.request_id}, tree.request_fingerprint,
               tree.fabric_version, tree.revision, tree.type, tree.builder, tree.width, tree.height,
               tree.radius, lists.operation, lists.sizes, tree.aggregate_us, tree.distribute_us,
               tree.total_us, tree.reason, lists.alternatives, tree.created, lists.nodes,
               lists.links, lists.physical, lists.spec, lists.forest, KeyOf(tree),
               tree.carriage.segment_bytes, tree.carriage.window);
  if (!status.ok()) return ExplainTree(db, tree, std::move(status));
  return InsertSwitches(db, tree);
}

absl::Status NoSuchTree(TreeId id, JobId job) {
  return absl::NotFoundError(absl::StrCat("job ", job.value(), " has no tree ", id.value(),
                                          ": it was never granted or is released"));
}

// Whether the tree may follow the stored one.
absl::Status CheckRevision(SqliteConnection& db, const TreeRecord& tree) {
  Statement& find = db.Sql(R"sql(
      SELECT revision, job_id, request_id, request_fingerprint, created_ns FROM tree
      WHERE id = ?)sql");
  ASSIGN_OR_RETURN(const bool found, find.Step(tree.id));
  if (!found) return NoSuchTree(tree.id, tree.job);
  TreeRecord stored;
  find.Read(stored.revision, stored.job, stored.request_id, stored.request_fingerprint,
            stored.created);
  find.Reset();
  if (stored.job != tree.job || stored.request_id != tree.request_id ||
      stored.request_fingerprint != tree.request_fingerprint ||
      absl::ToUnixNanos(stored.created) != absl::ToUnixNanos(tree.created)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tree ", tree.id.value(),
                     ": a revision keeps its job, request id, fingerprint and time of creation"));
  }
  if (tree.revision == stored.revision + 1) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("tree ", tree.id.value(), " has revision ",
                                                    stored.revision, ": revision ", tree.revision,
                                                    " cannot follow it; plan on the present one"));
}

absl::Status Revise(SqliteConnection& db, const TreeRecord& tree) {
  const TreeLists lists(tree);
  RETURN_IF_ERROR(db.Sql(R"sql(
      UPDATE OR FAIL tree SET fabric_version = ?, revision = ?, type = ?, builder = ?, width = ?,
          height = ?, radius = ?, operation = ?, sizes = ?, aggregate_us = ?, distribute_us = ?,
          total_us = ?, reason = ?, alternatives = ?, nodes = ?, links = ?, physical = ?,
          demands = ?, forest = ?, install_key = ?, segment_bytes = ?, segment_window = ?
      WHERE id = ?)sql")
                      .Run(tree.fabric_version, tree.revision, tree.type, tree.builder, tree.width,
                           tree.height, tree.radius, lists.operation, lists.sizes,
                           tree.aggregate_us, tree.distribute_us, tree.total_us, tree.reason,
                           lists.alternatives, lists.nodes, lists.links, lists.physical, lists.spec,
                           lists.forest, KeyOf(tree), tree.carriage.segment_bytes,
                           tree.carriage.window, tree.id));
  return InsertSwitches(db, tree);
}

// DATA_LOSS names the row.
absl::Status ReadTree(SqliteConnection& db, const Statement& row, TreeRecord& tree) {
  std::string operation, spec;
  std::string_view sizes, alternatives, nodes, links, physical, forest;
  row.Read(tree.id, tree.job, tree.request_id, tree.request_fingerprint, tree.fabric_version,
           tree.revision, tree.type, tree.builder, tree.width, tree.height, tree.radius, operation,
           sizes, tree.aggregate_us, tree.distribute_us, tree.total_us, tree.reason, alternatives,
           tree.created, nodes, links, physical, spec, forest);
  tree.carriage.key = std::string(row.Bytes(kKeyColumn));
  tree.carriage.segment_bytes = static_cast<uint32_t>(row.Integer(kKeyColumn + 1));
  tree.carriage.window = static_cast<uint32_t>(row.Integer(kKeyColumn + 2));
  ParseSpec(spec, tree);
  ASSIGN_OR_RETURN(
      tree.switches,
      db.Sql("SELECT guid, children FROM tree_switch WHERE tree_id = ? ORDER BY node")
          .Bind(tree.id)
          .List<TreeSwitchRecord>([](const Statement& serving, TreeSwitchRecord& record) {
            serving.Read(record.guid, record.children);
          }));
  absl::Status texts;
  const std::optional<Operation> known = ParseOperation(operation);
  if (!known) texts = absl::DataLossError("operation: there is none of its name");
  tree.spec.operation = known.value_or(Operation::kAllreduce);
  const auto read = [&texts](const char* name, auto parsed, auto& list) {
    if (texts.ok()) texts = Annotate(parsed.status(), name);
    if (parsed.ok()) list = *std::move(parsed);
  };
  read("sizes", ParseSizes(sizes), tree.spec.sizes);
  read("alternatives", ParseAlternatives(alternatives), tree.alternatives);
  if (texts.ok()) texts = Annotate(ParseTreeNodes(nodes, tree), "nodes");
  if (texts.ok() && tree.parents.size() != tree.ranks.size() + tree.switches.size()) {
    texts = absl::DataLossError("nodes: they are not its ranks and switches");
  }
  read("forest", ParseForest(forest), tree.forest);
  read("links", ParseNumbers<int64_t>(links), tree.links);
  read("physical", ParseNumbers<uint64_t>(physical), tree.physical);
  return texts.ok() ? texts : row.Damaged(texts, absl::StrCat("tree ", tree.id.value()));
}

}  // namespace

absl::Status Apply(SqliteConnection& db, const GrantTree& grant) { return Grant(db, *grant.tree); }

absl::Status Apply(SqliteConnection& db, const ReleaseTree& release) {
  RETURN_IF_ERROR(
      db.Sql("DELETE FROM tree WHERE id = ? AND job_id = ?").Run(release.tree, release.job));
  return db.changes() == 0 ? NoSuchTree(release.tree, release.job) : absl::OkStatus();
}

absl::Status Apply(SqliteConnection& db, const ChangeTrees& change) {
  for (const auto& [tree, job] : change.revoked) RETURN_IF_ERROR(Apply(db, ReleaseTree{tree, job}));
  for (const auto& tree : change.revised) {
    RETURN_IF_ERROR(CheckRevision(db, *tree));
    RETURN_IF_ERROR(db.Sql("UPDATE OR FAIL tree SET nodes = '[]' WHERE id = ?").Run(tree->id));
  }
  for (const auto& tree : change.revised) RETURN_IF_ERROR(Revise(db, *tree));
  for (const auto& tree : change.granted) RETURN_IF_ERROR(Grant(db, *tree));
  return absl::OkStatus();
}

absl::Status Apply(SqliteConnection& db, const PutCapabilities& put) {
  absl::flat_hash_set<Guid> named;
  for (const CapabilityRecord& record : put.capabilities) {
    named.insert(record.guid);
    RETURN_IF_ERROR(
        db.Sql(R"sql(
      INSERT INTO switch_capability (guid, entries_total, entries_reserved, degree_limit)
      SELECT ?1, CASE WHEN taken = 0 THEN ?2 ELSE max(?2, ?3 + taken) END, ?3, ?4
      FROM (SELECT count(*) AS taken FROM tree_switch WHERE guid = ?1) WHERE true
      ON CONFLICT (guid) DO UPDATE SET entries_total = excluded.entries_total,
          entries_reserved = excluded.entries_reserved, degree_limit = excluded.degree_limit)sql")
            .Run(record.guid, record.entries_total, record.entries_reserved, record.degree_limit));
  }
  if (put.others_stay) return absl::OkStatus();
  std::vector<Guid> unnamed;
  RETURN_IF_ERROR(db.Sql("SELECT guid FROM switch_capability").ForEach([&](const Statement& row) {
    if (!named.contains(row.GuidAt(0))) unnamed.push_back(row.GuidAt(0));
  }));
  for (const Guid guid : unnamed) {
    RETURN_IF_ERROR(db.Sql(R"sql(
      DELETE FROM switch_capability WHERE guid = ?1
          AND NOT EXISTS (SELECT 1 FROM tree_switch WHERE guid = ?1))sql")
                        .Run(guid));
  }
  return absl::OkStatus();
}

absl::Status LoadTrees(SqliteConnection& db, StoredState& state) {
  ASSIGN_OR_RETURN(state.trees, db.Sql(R"sql(
      SELECT id, job_id, request_id, request_fingerprint, fabric_version, revision, type, builder,
             width, height, radius, operation, sizes, aggregate_us, distribute_us, total_us, reason,
             alternatives, created_ns, nodes, links, physical, demands, forest, install_key,
             segment_bytes, segment_window
      FROM tree ORDER BY id)sql")
                                    .List<TreeRecord>([&](const Statement& row, TreeRecord& tree) {
                                      return ReadTree(db, row, tree);
                                    }));
  ASSIGN_OR_RETURN(state.entries, ReadEntries(db));
  return absl::OkStatus();
}

// GUIDs are unsigned: those with the top bit set come last.
absl::StatusOr<std::vector<EntryUse>> ReadEntries(SqliteConnection& db) {
  return db.Sql(absl::StrCat(kEntriesOf, "ORDER BY guid < 0, guid")).List<EntryUse>(ReadEntryUse);
}

}  // namespace coppice
