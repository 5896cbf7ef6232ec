// Trees and the entries that they take: the hot path of the store. A grant is one row of `tree`,
// with its nodes as JSON text, and one row of `tree_switch` per serving switch, which a trigger
// admits if the switch has an entry left; a release is one DELETE, whose trigger frees the entries.
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "daemon/base/status_macros.h"
#include "db/number_list.h"
#include "db/refusals.h"
#include "db/sqlite_mutations.h"

namespace coppice {

// OR FAIL, like RAISE(FAIL) in the triggers, spares SQLite a statement journal per row: Apply's
// savepoint undoes a mutation that fails half way.
absl::Status SqliteMutator::PrepareTrees() {
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

absl::Status SqliteMutator::Do(const GrantTree& grant) { return Grant(*grant.tree); }

absl::Status SqliteMutator::Grant(const TreeRecord& tree) {
  absl::Status status = InsertTree(tree);
  if (!status.ok()) return ExplainTree(tree, std::move(status));
  return InsertSwitches(tree);
}

absl::Status SqliteMutator::InsertSwitches(const TreeRecord& tree) {
  int64_t node = static_cast<int64_t>(tree.ranks.size());
  for (const TreeSwitchRecord& serving : tree.switches) {
    insert_tree_switch_.Bind(tree.id.value()).Bind(node++).Bind(serving.guid);
    absl::Status status = insert_tree_switch_.Bind(int64_t{serving.children}).Run();
    if (!status.ok()) return ExplainSwitch(serving.guid, std::move(status));
  }
  return absl::OkStatus();
}

void SqliteMutator::WriteLists(const TreeRecord& tree) {
  nodes_text_.clear();
  links_text_.clear();
  physical_text_.clear();
  AppendTreeNodes(tree, nodes_text_);
  AppendNumbers(tree.links, links_text_);
  AppendNumbers(tree.physical, physical_text_);
}

absl::Status SqliteMutator::InsertTree(const TreeRecord& tree) {
  WriteLists(tree);
  Statement& insert = insert_tree_;
  insert.Bind(tree.id.value()).Bind(tree.job.value()).BindOptional(tree.request_id);
  insert.Bind(static_cast<int64_t>(tree.request_fingerprint));
  insert.Bind(static_cast<int64_t>(tree.fabric_version)).Bind(int64_t{tree.revision});
  insert.Bind(int64_t{tree.type}).Bind(tree.builder).Bind(int64_t{tree.width});
  insert.Bind(int64_t{tree.height}).Bind(int64_t{tree.radius}).Bind(tree.operation);
  insert.Bind(tree.sizes).Bind(tree.aggregate_us).Bind(tree.distribute_us).Bind(tree.total_us);
  insert.Bind(tree.reason).Bind(tree.alternatives).Bind(tree.created);
  insert.Bind(nodes_text_).Bind(links_text_).Bind(physical_text_);
  return insert.Bind(tree.demands).Run();
}

absl::Status SqliteMutator::ExplainTree(const TreeRecord& tree, absl::Status failure) {
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

absl::Status SqliteMutator::ExplainSwitch(Guid guid, absl::Status failure) {
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

absl::Status SqliteMutator::Do(const ReleaseTree& release) {
  RETURN_IF_ERROR(delete_tree_.Bind(release.tree.value()).Bind(release.job.value()).Run());
  return connection_.changes() == 0 ? NoSuchTree(release.tree, release.job) : absl::OkStatus();
}

absl::Status SqliteMutator::Do(const PutCapabilities& put) {
  for (const CapabilityRecord& record : put.capabilities) {
    put_capability_.Bind(record.guid).Bind(int64_t{record.entries_total});
    put_capability_.Bind(int64_t{record.entries_reserved}).Bind(int64_t{record.degree_limit});
    RETURN_IF_ERROR(put_capability_.Run());
  }
  return DropUnnamed(put);
}

absl::Status SqliteMutator::DropUnnamed(const PutCapabilities& put) {
  absl::flat_hash_set<Guid> named;
  for (const CapabilityRecord& record : put.capabilities) named.insert(record.guid);
  std::vector<Guid> unnamed;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, list_capabilities_.Step());
    if (!row) break;
    if (!named.contains(list_capabilities_.GuidAt(0))) {
      unnamed.push_back(list_capabilities_.GuidAt(0));
    }
  }
  for (Guid guid : unnamed) RETURN_IF_ERROR(delete_capability_.Bind(guid).Run());
  return absl::OkStatus();
}

}  // namespace coppice
