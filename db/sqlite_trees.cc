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

constexpr char kTrees[] = R"sql(
    SELECT id, job_id, request_id, request_fingerprint, fabric_version, revision, type, builder,
           width, height, radius, operation, sizes, aggregate_us, distribute_us, total_us, reason,
           alternatives, created_ns, nodes, links, physical, demands
    FROM tree ORDER BY id)sql";
constexpr char kTreeSwitches[] =
    "SELECT guid, children FROM tree_switch WHERE tree_id = ? ORDER BY node";
// GUIDs are unsigned: those with the top bit set come last.
constexpr char kEntries[] = R"sql(
    SELECT guid, entries_total, entries_reserved, degree_limit,
           (SELECT count(*) FROM tree_switch s WHERE s.guid = c.guid)
    FROM switch_capability c ORDER BY guid < 0, guid)sql";

}  // namespace

// OR FAIL, like RAISE(FAIL) in the triggers, spares SQLite a statement journal per row: the
// mutator's savepoint undoes a mutation that fails half way.
absl::Status TreeWriter::Prepare() {
  ASSIGN_OR_RETURN(insert_tree_, connection_.Prepare(R"sql(
      INSERT OR FAIL INTO tree (id, job_id, request_id, request_fingerprint, fabric_version,
          revision, type, builder, width, height, radius, operation, sizes, aggregate_us,
          distribute_us, total_us, reason, alternatives, created_ns, nodes, links, physical, demands)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))sql"));
  ASSIGN_OR_RETURN(insert_tree_switch_, connection_.Prepare(R"sql(
      INSERT OR FAIL INTO tree_switch (tree_id, node, guid, children)
      VALUES (?, ?, ?, ?))sql"));
  ASSIGN_OR_RETURN(delete_tree_,
                   connection_.Prepare("DELETE FROM tree WHERE id = ? AND job_id = ?"));
  ASSIGN_OR_RETURN(find_tree_, connection_.Prepare("SELECT id FROM tree WHERE id = ?"));
  ASSIGN_OR_RETURN(find_tree_request_,
                   connection_.Prepare("SELECT id FROM tree WHERE job_id = ? AND request_id = ?"));
  ASSIGN_OR_RETURN(find_tree_floor_,
                   connection_.Prepare("SELECT value FROM setting WHERE name = 'tree_id_floor'"));
  ASSIGN_OR_RETURN(find_active_job_,
                   connection_.Prepare("SELECT id FROM job WHERE id = ? AND state = 'active'"));
  RETURN_IF_ERROR(PrepareCapabilities());
  return PrepareRevisions();
}

absl::Status TreeWriter::PrepareCapabilities() {
  ASSIGN_OR_RETURN(find_entries_, connection_.Prepare(R"sql(
      SELECT entries_total, entries_reserved, degree_limit,
             (SELECT count(*) FROM tree_switch s WHERE s.guid = c.guid)
      FROM switch_capability c WHERE guid = ?)sql"));
  ASSIGN_OR_RETURN(put_capability_, connection_.Prepare(R"sql(
      INSERT INTO switch_capability (guid, entries_total, entries_reserved, degree_limit)
      SELECT ?1, CASE WHEN taken = 0 THEN ?2 ELSE max(?2, ?3 + taken) END, ?3, ?4
      FROM (SELECT count(*) AS taken FROM tree_switch WHERE guid = ?1) WHERE true
      ON CONFLICT (guid) DO UPDATE SET entries_total = excluded.entries_total,
          entries_reserved = excluded.entries_reserved, degree_limit = excluded.degree_limit)sql"));
  ASSIGN_OR_RETURN(delete_capability_, connection_.Prepare(R"sql(
      DELETE FROM switch_capability WHERE guid = ?1
          AND NOT EXISTS (SELECT 1 FROM tree_switch WHERE guid = ?1))sql"));
  ASSIGN_OR_RETURN(list_capabilities_, connection_.Prepare("SELECT guid FROM switch_capability"));
  return absl::OkStatus();
}

absl::Status TreeWriter::PrepareRevisions() {
  ASSIGN_OR_RETURN(find_revision_, connection_.Prepare(R"sql(
      SELECT revision, job_id, ifnull(request_id, ''), request_fingerprint, created_ns
      FROM tree WHERE id = ?)sql"));
  ASSIGN_OR_RETURN(empty_tree_,
                   connection_.Prepare("UPDATE OR FAIL tree SET nodes = '[]' WHERE id = ?"));
  ASSIGN_OR_RETURN(update_tree_, connection_.Prepare(R"sql(
      UPDATE OR FAIL tree SET fabric_version = ?, revision = ?, type = ?, builder = ?, width = ?,
          height = ?, radius = ?, operation = ?, sizes = ?, aggregate_us = ?, distribute_us = ?,
          total_us = ?, reason = ?, alternatives = ?, nodes = ?, links = ?, physical = ?,
          demands = ?
      WHERE id = ?)sql"));
  return absl::OkStatus();
}

absl::Status TreeWriter::Grant(const TreeRecord& tree) {
  absl::Status status = InsertTree(tree);
  if (!status.ok()) return ExplainTree(tree, std::move(status));
  return InsertSwitches(tree);
}

absl::Status TreeWriter::InsertSwitches(const TreeRecord& tree) {
  int64_t node = static_cast<int64_t>(tree.ranks.size());
  for (const TreeSwitchRecord& serving : tree.switches) {
    insert_tree_switch_.Bind(tree.id.value()).Bind(node++).Bind(serving.guid);
    absl::Status status = insert_tree_switch_.Bind(int64_t{serving.children}).Run();
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
  Statement& insert = insert_tree_;
  insert.Bind(tree.id.value()).Bind(tree.job.value()).BindOptional(tree.request_id);
  insert.Bind(static_cast<int64_t>(tree.request_fingerprint));
  insert.Bind(static_cast<int64_t>(tree.fabric_version)).Bind(int64_t{tree.revision});
  insert.Bind(int64_t{tree.type}).Bind(tree.builder).Bind(int64_t{tree.width});
  insert.Bind(int64_t{tree.height}).Bind(int64_t{tree.radius}).Bind(operation_text_);
  insert.Bind(sizes_text_).Bind(tree.aggregate_us).Bind(tree.distribute_us).Bind(tree.total_us);
  insert.Bind(tree.reason).Bind(alternatives_text_).Bind(tree.created);
  insert.Bind(nodes_text_).Bind(links_text_).Bind(physical_text_);
  return insert.Bind(spec_text_).Run();
}

absl::Status TreeWriter::ExplainTree(const TreeRecord& tree, absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  find_active_job_.Bind(tree.job.value());
  ASSIGN_OR_RETURN(const int64_t active, find_active_job_.Number());
  if (active == 0) return JobNotActive(tree.job);
  find_tree_.Bind(tree.id.value());
  ASSIGN_OR_RETURN(const int64_t same_id, find_tree_.Number());
  if (same_id != 0) return TreeIdTaken(tree.id);
  ASSIGN_OR_RETURN(const int64_t floor, find_tree_floor_.Number());
  if (tree.id.value() <= floor) return TreeIdFromEarlierRun(tree.id, TreeId(floor));
  find_tree_request_.Bind(tree.job.value()).Bind(tree.request_id);
  ASSIGN_OR_RETURN(const int64_t same_request, find_tree_request_.Number());
  if (same_request != 0) return TreeRequestTaken(tree.request_id, tree.job, TreeId(same_request));
  return failure;
}

absl::Status TreeWriter::ExplainSwitch(Guid guid, absl::Status failure) {
  if (!absl::IsInternal(failure)) return failure;
  ASSIGN_OR_RETURN(const bool known, find_entries_.Bind(guid).Step());
  if (!known) return NoCapability(guid);
  EntryUse use;
  use.capability.guid = guid;
  use.capability.entries_total = find_entries_.Word(0);
  use.capability.entries_reserved = find_entries_.Word(1);
  use.capability.degree_limit = find_entries_.Word(2);
  use.entries_taken = find_entries_.Word(3);
  find_entries_.Reset();
  return NoEntryLeft(use);
}

absl::Status TreeWriter::Apply(const ReleaseTree& release) {
  RETURN_IF_ERROR(delete_tree_.Bind(release.tree.value()).Bind(release.job.value()).Run());
  return connection_.changes() == 0 ? NoSuchTree(release.tree, release.job) : absl::OkStatus();
}

absl::Status TreeWriter::Apply(const ChangeTrees& change) {
  for (const auto& [tree, job] : change.revoked) RETURN_IF_ERROR(Apply(ReleaseTree{tree, job}));
  for (const auto& tree : change.revised) {
    RETURN_IF_ERROR(CheckRevision(*tree));
    RETURN_IF_ERROR(empty_tree_.Bind(tree->id.value()).Run());
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
  ASSIGN_OR_RETURN(const bool found, find.Bind(tree.id.value()).Step());
  if (!found) return NoSuchTree(tree.id, tree.job);
  const uint32_t stored = find.Word(0);
  const bool same = find.Integer(1) == tree.job.value() && find.Text(2) == tree.request_id &&
                    static_cast<uint64_t>(find.Integer(3)) == tree.request_fingerprint &&
                    find.Integer(4) == absl::ToUnixNanos(tree.created);
  find.Reset();
  if (!same) return NotTheSameTree(tree.id);
  return tree.revision == stored + 1 ? absl::OkStatus() : NotTheNextRevision(tree, stored);
}

absl::Status TreeWriter::UpdateTree(const TreeRecord& tree) {
  WriteTexts(tree);
  Statement& update = update_tree_;
  update.Bind(static_cast<int64_t>(tree.fabric_version)).Bind(int64_t{tree.revision});
  update.Bind(int64_t{tree.type}).Bind(tree.builder).Bind(int64_t{tree.width});
  update.Bind(int64_t{tree.height}).Bind(int64_t{tree.radius}).Bind(operation_text_);
  update.Bind(sizes_text_).Bind(tree.aggregate_us).Bind(tree.distribute_us).Bind(tree.total_us);
  update.Bind(tree.reason).Bind(alternatives_text_).Bind(nodes_text_).Bind(links_text_);
  return update.Bind(physical_text_).Bind(spec_text_).Bind(tree.id.value()).Run();
}

absl::Status TreeWriter::Apply(const PutCapabilities& put) {
  for (const CapabilityRecord& record : put.capabilities) {
    put_capability_.Bind(record.guid).Bind(int64_t{record.entries_total});
    put_capability_.Bind(int64_t{record.entries_reserved}).Bind(int64_t{record.degree_limit});
    RETURN_IF_ERROR(put_capability_.Run());
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
  for (Guid guid : unnamed) RETURN_IF_ERROR(delete_capability_.Bind(guid).Run());
  return absl::OkStatus();
}

absl::Status TreeReader::Prepare() {
  ASSIGN_OR_RETURN(trees_, connection_.Prepare(kTrees));
  ASSIGN_OR_RETURN(tree_switches_, connection_.Prepare(kTreeSwitches));
  ASSIGN_OR_RETURN(entries_, connection_.Prepare(kEntries));
  return absl::OkStatus();
}

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
  tree.id = TreeId(row.Integer(0));
  tree.job = JobId(row.Integer(1));
  tree.request_id = std::string(row.Text(2));
  tree.request_fingerprint = static_cast<uint64_t>(row.Integer(3));
  tree.fabric_version = static_cast<uint64_t>(row.Integer(4));
  tree.revision = row.Word(5);
  tree.type = static_cast<uint8_t>(row.Integer(6));
  tree.builder = std::string(row.Text(7));
  tree.width = row.Word(8);
  tree.height = row.Word(9);
  tree.radius = row.Word(10);
  tree.aggregate_us = row.Real(13);
  tree.distribute_us = row.Real(14);
  tree.total_us = row.Real(15);
  tree.reason = std::string(row.Text(16));
  tree.created = row.TimeAt(18);
  ParseSpec(std::string(row.Text(22)), tree);
  tree_switches_.Bind(tree.id.value());
  RETURN_IF_ERROR(tree_switches_.ForEach([&](const Statement& serving) {
    tree.switches.push_back({serving.GuidAt(0), serving.Word(1)});
  }));
  const absl::Status texts = ReadTexts(row, tree);
  if (texts.ok()) return tree;
  return Annotate(texts, absl::StrCat("database ", connection_.path(), ": tree ", tree.id.value()));
}

absl::Status TreeReader::ReadTexts(const Statement& row, TreeRecord& tree) {
  const std::optional<Operation> operation = ParseOperation(std::string(row.Text(11)));
  if (!operation) return absl::DataLossError("operation: there is none of its name");
  tree.spec.operation = *operation;
  const auto read = [&row](int column, const char* name, auto parse, auto& list) {
    auto parsed = parse(row.Text(column));
    if (!parsed.ok()) return Annotate(parsed.status(), name);
    list = *std::move(parsed);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(read(12, "sizes", ParseSizes, tree.spec.sizes));
  RETURN_IF_ERROR(read(17, "alternatives", ParseAlternatives, tree.alternatives));
  RETURN_IF_ERROR(Annotate(ParseTreeNodes(row.Text(19), tree), "nodes"));
  if (tree.parents.size() != tree.ranks.size() + tree.switches.size()) {
    return absl::DataLossError("nodes: they are not its ranks and switches");
  }
  RETURN_IF_ERROR(read(20, "links", ParseSigned, tree.links));
  return read(21, "physical", ParseUnsigned, tree.physical);
}

absl::StatusOr<std::vector<EntryUse>> TreeReader::Entries() {
  std::vector<EntryUse> entries;
  RETURN_IF_ERROR(entries_.ForEach([&](const Statement& row) {
    const CapabilityRecord capability{row.GuidAt(0), row.Word(1), row.Word(2), row.Word(3)};
    entries.push_back({capability, row.Word(4)});
  }));
  return entries;
}

}  // namespace coppice
