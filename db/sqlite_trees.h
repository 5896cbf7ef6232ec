// Trees and the entries that they take, as SQL: the writer's part and the reader's. The hot path of
// the store. A grant is one row of `tree`, with its nodes as JSON text, and one row of
// `tree_switch` per serving switch, which a trigger admits if the switch has an entry left; a
// release is one DELETE, whose trigger frees the entries.
//
// Trees may be planned anew or taken back, many in one step. A tree that is revised keeps its row:
// setting its nodes to none frees its entries by a trigger, and the second update fills the row
// again.
#ifndef COPPICE_DB_SQLITE_TREES_H_
#define COPPICE_DB_SQLITE_TREES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/sqlite_connection.h"
#include "db/store.h"

namespace coppice {

// Belongs to the writer's thread; works within its transaction. Contracts as of the mutations.
class TreeWriter {
 public:
  explicit TreeWriter(SqliteConnection& connection);

  absl::Status Apply(const GrantTree& grant) { return Grant(*grant.tree); }
  absl::Status Apply(const ReleaseTree& release);
  absl::Status Apply(const ChangeTrees& change);
  absl::Status Apply(const PutCapabilities& put);

 private:
  absl::Status Grant(const TreeRecord& tree);
  absl::Status InsertTree(const TreeRecord& tree);
  absl::Status InsertSwitches(const TreeRecord& tree);
  absl::Status CheckRevision(const TreeRecord& tree);
  absl::Status UpdateTree(const TreeRecord& tree);
  void WriteTexts(const TreeRecord& tree);
  absl::Status DropUnnamed(const PutCapabilities& put);
  // Words for a constraint that `failure` reports; a storage failure stays as it is.
  absl::Status ExplainTree(const TreeRecord& tree, absl::Status failure);
  absl::Status ExplainSwitch(Guid guid, absl::Status failure);

  Statement insert_tree_, insert_tree_switch_, delete_tree_;
  Statement find_revision_, empty_tree_, update_tree_;
  Statement find_active_job_, find_tree_, find_tree_request_, find_tree_floor_, find_entries_;
  Statement put_capability_, delete_capability_, list_capabilities_;
  // Reused from tree to tree.
  std::string nodes_text_, links_text_, physical_text_;
  std::string operation_text_, sizes_text_, spec_text_, alternatives_text_;
};

// As SqliteReader, part of which it is. Contracts as of Store.
class TreeReader {
 public:
  explicit TreeReader(SqliteConnection& connection);

  // Those that the state keeps, and entries.
  absl::Status Load(StoredState& state);
  absl::StatusOr<std::vector<EntryUse>> Entries();

 private:
  // From the row that the statement stands on. DATA_LOSS names the row.
  absl::StatusOr<TreeRecord> TreeAt(const Statement& row);

  Statement trees_, tree_switches_, entries_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_TREES_H_
