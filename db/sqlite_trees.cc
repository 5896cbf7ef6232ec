#include "db/sqlite_trees.h"

#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/json_lists.h"
#include "db/refusals.h"
#include "db/tree_texts.h"

namespace coppice {
namespace {

constexpr char kColumns[] =
    "id, job_id, request_id, request_fingerprint, fabric_version, revision, type, builder, width, "
    "height, radius, operation, sizes, aggregate_us, distribute_us, total_us, reason, "
    "alternatives, created_ns, nodes, links, physical, demands";

void ReadEntries(const Statement& row, EntryUse& use) {
  row.Read(use.capability.guid, use.capability.entries_total, use.capability.entries_reserved,
           use.capability.degree_limit, use.entries_taken);
}

}  // namespace

// OR FAIL, like RAISE(FAIL) in the triggers, spares SQLite a statement journal per row: the
// mutator's savepoint undoes a mutation that fails half way.
TreeWriter::TreeWriter(SqliteConnection& connection)
    : insert_tree_(connection,
                   absl::StrCat("INSERT OR FAIL INTO tree (", kColumns, ") VALUES (?, ?, ?, ?, ?, ",
                                "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")),
      insert_tree_switch_(connection, R"sql(
      INSERT OR FAIL INTO tree_switch (tree_id, node, guid, children) VALUES (?, ?, ?, ?))sql"),
      delete_tree_(connection, "DELETE FROM tree WHERE id = ? AND job_id = ?"),
      find_revision_(connection, R"sql(
      SELECT revision, job_id, request_id, request_fingerprint, created_ns FROM tree
      WHERE id = ?)sql"),
      empty_tree_(connection, "UPDATE OR FAIL tree SET nodes = '[]' WHERE id = ?"),
      update_tree_(connection, R"sql(
      UPDATE OR FAIL tree SET fabric_version = ?, revision = ?, type = ?, builder = ?, width = ?,
          height = ?, radius = ?, operation = ?, sizes = ?, aggregate_us = ?, distribute_us = ?,
          total_us = ?, reason = ?, alternatives = ?, nodes = ?, links = ?, physical = ?,
          demands = ?
      WHERE id = ?)sql"),
      find_active_job_(connection, "SELECT id FROM job WHERE id = ? AND state = 'active'"),
      find_tree_(connection, "SELECT id FROM tree WHERE id = ?"),
      find_tree_request_(connection, "SELECT id FROM tree WHERE job_id = ? AND request_id = ?"),
      find_tree_floor_(connection, "SELECT value FROM setting WHERE name = 'tree_id_floor'"),
      find_entries_(connection, R"sql(
      SELECT guid, entries_total, entries_reserved, degree_limit,
             (SELECT count(*) FROM tree_switch s WHERE s.guid = c.guid)
      FROM switch_capability c WHERE guid = ?)sql"),
      put_capability_(connection, R"sql(
      INSERT INTO switch_capability (guid, entries_total, entries_reserved, degree_limit)
      SELECT ?1, CASE WHEN taken = 0 THEN ?2 ELSE max(?2, ?3 + taken) END, ?3, ?4
      FROM (SELECT count(*) AS taken FROM tree_switch WHERE guid = ?1) WHERE true
      ON CONFLICT (guid) DO UPDATE SET entries_total = excluded.entries_total,
          entries_reserved = excluded.entries_reserved, degree_limit = excluded.degree_limit)sql"),
      delete_capability_(connection, R"sql(
      DELETE FROM switch_capability WHERE guid = ?1
          AND NOT EXISTS (SELECT 1 FROM tree_switch WHERE guid = ?1))sql"),
      list_capabilities_(connection, "SELECT guid FROM switch_capability") {}

absl::Status TreeWriter::Grant(const TreeRecord& tree) {
  absl::Status status = InsertTree(tree);
  if (!status.ok()) return ExplainTree(tree, std::move(status));
  return InsertSwitches(tree);
}

absl::Status TreeWriter::InsertSwitches(const TreeRecord& tree) {
  int64_t node = static_cast<int64_t>(tree.ranks.size());
  for (const TreeSwitchRecord& serving : tree.switches) {
    absl::Status status = insert_tree_switch_.Run(tree.id, node++, serving.guid, serving.children);
    if (!status.ok()) return ExplainSwitch(serving.guid, std::move(status));
  }
  return absl::OkStatus();
}

void TreeWriter::WriteTexts(const TreeRecord& tree) {
  nodes_text_.clear();
  links_text_.clear();
  physical_text_.clear();
  AppendTreeNodes(tree, nodes_text_);
  AppendNumbers(tree.links, links_text_);
  AppendNumbers(tree.physical, physical_text_);
  operation_text_ = std::string(ToString(tree.spec.operation));
  sizes_text_ = SizesText(tree.spec.sizes);
  spec_text_ = SpecText(tree);
  alternatives_text_ = AlternativesText(tree.alternatives);
}

absl::Status TreeWriter::InsertTree(const TreeRecord& tree) {
  WriteTexts(tree);
  return insert_tree_.Run(tree.id, tree.job, Statement::Optional{tree.request_id},
                          tree.request_fingerprint, tree.fabric_version, tree.revision, tree.type,
                          tree.builder, tree.width, tree.height, tree.radius, operation_text_,
                          sizes_text_, tree.aggregate_us, tree.distribute_us, tree.total_us,
                          tree.reason, alternatives_text_, tree.created, nodes_text_, links_text_,
                          physical_text_, spec_text_);
}

absl::Status TreeWriter::ExplainTree(const TreeRecord& tree, absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  ASSIGN_OR_RETURN(const int64_t active, find_active_job_.Number(tree.job));
  if (active == 0) return JobNotActive(tree.job);
  ASSIGN_OR_RETURN(const int64_t same_id, find_tree_.Number(tree.id));
  if (same_id != 0) return TreeIdTaken(tree.id);
  ASSIGN_OR_RETURN(const int64_t floor, find_tree_floor_.Number());
  if (tree.id.value() <= floor) return TreeIdFromEarlierRun(tree.id, TreeId(floor));
  ASSIGN_OR_RETURN(const int64_t same_request,
                   find_tree_request_.Number(tree.job, tree.request_id));
  if (same_request != 0) return TreeRequestTaken(tree.request_id, tree.job, TreeId(same_request));
  return failure;
}

absl::Status TreeWriter::ExplainSwitch(Guid guid, absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  ASSIGN_OR_RETURN(const bool known, find_entries_.Step(guid));
  if (!known) return NoCapability(guid);
  EntryUse use;
  ReadEntries(find_entries_, use);
  find_entries_.Reset();
  return NoEntryLeft(use);
}

absl::Status TreeWriter::Apply(const ReleaseTree& release) {
  RETURN_IF_ERROR(delete_tree_.Run(release.tree, release.job));
  return delete_tree_.changes() == 0 ? NoSuchTree(release.tree, release.job) : absl::OkStatus();
}

absl::Status TreeWriter::Apply(const ChangeTrees& change) {
  for (const auto& [tree, job] : change.revoked) RETURN_IF_ERROR(Apply(ReleaseTree{tree, job}));
  for (const auto& tree : change.revised) {
    RETURN_IF_ERROR(CheckRevision(*tree));
    RETURN_IF_ERROR(empty_tree_.Run(tree->id));
  }
  for (const auto& tree : change.revised) {
    RETURN_IF_ERROR(UpdateTree(*tree));
    RETURN_IF_ERROR(InsertSwitches(*tree));
  }
  for (const auto& tree : change.granted) RETURN_IF_ERROR(Grant(*tree));
  return absl::OkStatus();
}

absl::Status TreeWriter::CheckRevision(const TreeRecord& tree) {
  Statement& find = find_revision_;
  ASSIGN_OR_RETURN(const bool found, find.Step(tree.id));
  if (!found) return NoSuchTree(tree.id, tree.job);
  TreeRecord stored;
  find.Read(stored.revision, stored.job, stored.request_id, stored.request_fingerprint,
            stored.created);
  find.Reset();
  if (stored.job != tree.job || stored.request_id != tree.request_id ||
      stored.request_fingerprint != tree.request_fingerprint ||
      absl::ToUnixNanos(stored.created) != absl::ToUnixNanos(tree.created)) {
    return NotTheSameTree(tree.id);
  }
  return tree.revision == stored.revision + 1 ? absl::OkStatus()
                                              : NotTheNextRevision(tree, stored.revision);
}

absl::Status TreeWriter::UpdateTree(const TreeRecord& tree) {
  WriteTexts(tree);
  return update_tree_.Run(tree.fabric_version, tree.revision, tree.type, tree.builder, tree.width,
                          tree.height, tree.radius, operation_text_, sizes_text_, tree.aggregate_us,
                          tree.distribute_us, tree.total_us, tree.reason, alternatives_text_,
                          nodes_text_, links_text_, physical_text_, spec_text_, tree.id);
}

absl::Status TreeWriter::Apply(const PutCapabilities& put) {
  for (const CapabilityRecord& record : put.capabilities) {
    RETURN_IF_ERROR(put_capability_.Run(record.guid, record.entries_total, record.entries_reserved,
                                        record.degree_limit));
  }
  return DropUnnamed(put);
}

absl::Status TreeWriter::DropUnnamed(const PutCapabilities& put) {
  absl::flat_hash_set<Guid> named;
  for (const CapabilityRecord& record : put.capabilities) named.insert(record.guid);
  std::vector<Guid> unnamed;
  RETURN_IF_ERROR(list_capabilities_.ForEach([&](const Statement& row) {
    if (!named.contains(row.GuidAt(0))) unnamed.push_back(row.GuidAt(0));
  }));
  for (Guid guid : unnamed) RETURN_IF_ERROR(delete_capability_.Run(guid));
  return absl::OkStatus();
}

TreeReader::TreeReader(SqliteConnection& connection)
    : trees_(connection, absl::StrCat("SELECT ", kColumns, " FROM tree ORDER BY id")),
      tree_switches_(connection,
                     "SELECT guid, children FROM tree_switch WHERE tree_id = ? ORDER BY node"),
      // GUIDs are unsigned: those with the top bit set come last.
      entries_(connection, R"sql(
      SELECT guid, entries_total, entries_reserved, degree_limit,
             (SELECT count(*) FROM tree_switch s WHERE s.guid = c.guid)
      FROM switch_capability c ORDER BY guid < 0, guid)sql") {}

absl::Status TreeReader::Load(StoredState& state) {
  RETURN_IF_ERROR(trees_.ForEach([&](const Statement& row) -> absl::Status {
    ASSIGN_OR_RETURN(state.trees.emplace_back(), TreeAt(row));
    return absl::OkStatus();
  }));
  ASSIGN_OR_RETURN(state.entries, Entries());
  return absl::OkStatus();
}

absl::StatusOr<TreeRecord> TreeReader::TreeAt(const Statement& row) {
  TreeRecord tree;
  std::string operation, demands;
  std::string_view sizes, alternatives, nodes, links, physical;
  row.Read(tree.id, tree.job, tree.request_id, tree.request_fingerprint, tree.fabric_version,
           tree.revision, tree.type, tree.builder, tree.width, tree.height, tree.radius, operation,
           sizes, tree.aggregate_us, tree.distribute_us, tree.total_us, tree.reason, alternatives,
           tree.created, nodes, links, physical, demands);
  ParseSpec(demands, tree);
  ASSIGN_OR_RETURN(tree.switches, tree_switches_.Bind(tree.id).List<TreeSwitchRecord>(
                                      [](const Statement& serving, TreeSwitchRecord& record) {
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
  read("links", ParseSigned(links), tree.links);
  read("physical", ParseUnsigned(physical), tree.physical);
  if (texts.ok()) return tree;
  return row.Damaged(texts, absl::StrCat("tree ", tree.id.value()));
}

absl::StatusOr<std::vector<EntryUse>> TreeReader::Entries() {
  return entries_.List<EntryUse>(ReadEntries);
}

}  // namespace coppice
