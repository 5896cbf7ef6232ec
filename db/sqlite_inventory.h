// The tables of what the fabric holds and of what an administrator put in force.
//
// The inventory as SQL: the writer's part and the reader's. Rows appear once, with first_seen, and
// are touched by every sweep that sees them, with last_seen; nothing is deleted.
#ifndef COPPICE_DB_SQLITE_INVENTORY_H_
#define COPPICE_DB_SQLITE_INVENTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/sqlite_connection.h"
#include "db/store.h"

namespace coppice {

// Belongs to the writer's thread; works within its transaction. Contracts as of the mutations.
class InventoryWriter {
 public:
  explicit InventoryWriter(SqliteConnection& connection);

  absl::Status Apply(const PutInventory& put);

 private:
  absl::Status InsertNodes(const PutInventory& put);
  absl::Status InsertPorts(const PutInventory& put);
  absl::Status InsertLinks(const PutInventory& put);
  // Words for a constraint that `failure` reports; a storage failure stays as it is.
  absl::Status ExplainNode(Guid guid, const std::string& user, absl::Status failure);

  Statement put_node_, put_port_, put_link_, find_node_, raise_fabric_version_;
};

// As SqliteReader, part of which it is. Contracts as of Store.
class InventoryReader {
 public:
  explicit InventoryReader(SqliteConnection& connection);

  absl::StatusOr<std::vector<int64_t>> LinkIds(const std::vector<LinkRecord>& links);

 private:
  Statement link_;
};

// What an administrator put in force, quotas and the profile, and the highest numbers that were
// ever given, as SQL: the writer's part and the reader's.

// Belongs to the writer's thread; works within its transaction. Contracts as of the mutations.
class SettingWriter {
 public:
  explicit SettingWriter(SqliteConnection& connection);

  absl::Status Apply(const PutQuota& put);
  absl::Status Apply(const PutProfile& put);

 private:
  Statement put_quota_, delete_quota_, put_profile_, delete_profile_;
};

// As SqliteReader, part of which it is.
class SettingReader {
 public:
  explicit SettingReader(SqliteConnection& connection);

  // Fills quotas, the profile and what was highest of the state.
  absl::Status Load(StoredState& state);

 private:
  Statement last_id_, setting_, quotas_, profile_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_INVENTORY_H_
