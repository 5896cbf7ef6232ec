// Trees planned anew or taken back, many in one step. A tree that is revised keeps its row: setting
// its nodes to none frees its entries by a trigger, and the second update fills the row again.
#include <utility>

#include "daemon/base/status_macros.h"
#include "db/refusals.h"
#include "db/sqlite_mutations.h"

namespace coppice {

absl::Status SqliteMutator::PrepareRevisions() {
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

absl::Status SqliteMutator::Do(const ChangeTrees& change) {
  for (const auto& [tree, job] : change.revoked) RETURN_IF_ERROR(Do(ReleaseTree{tree, job}));
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

absl::Status SqliteMutator::CheckRevision(const TreeRecord& tree) {
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

absl::Status SqliteMutator::UpdateTree(const TreeRecord& tree) {
  WriteLists(tree);
  Statement& update = update_tree_;
  update.Bind(static_cast<int64_t>(tree.fabric_version)).Bind(int64_t{tree.revision});
  update.Bind(int64_t{tree.type}).Bind(tree.builder).Bind(int64_t{tree.width});
  update.Bind(int64_t{tree.height}).Bind(int64_t{tree.radius}).Bind(tree.operation);
  update.Bind(tree.sizes).Bind(tree.aggregate_us).Bind(tree.distribute_us).Bind(tree.total_us);
  update.Bind(tree.reason).Bind(tree.alternatives).Bind(nodes_text_).Bind(links_text_);
  return update.Bind(physical_text_).Bind(tree.demands).Bind(tree.id.value()).Run();
}

}  // namespace coppice
