// Events as SQL: added at one end of a table, dropped from the other.
//
// The database numbers them, so that no id is given twice, even after the last event was dropped;
// ids rise in the order of commits.
#ifndef COPPICE_DB_SQLITE_EVENT_WRITER_H_
#define COPPICE_DB_SQLITE_EVENT_WRITER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/sqlite_connection.h"
#include "db/store.h"

namespace coppice {

// Belongs to the writer's thread; works within its transaction.
class EventWriter {
 public:
  explicit EventWriter(Connection& connection) : connection_(connection) {}
  // The connection must hold the newest schema.
  absl::Status Prepare();

  absl::Status Append(const AppendEvents& append);
  absl::Status Prune(const PruneEvents& prune);

 private:
  // Drops what is beyond `keep`, at most `most` of them. O(log events) if nothing is.
  absl::Status DropBeyond(int64_t keep, int64_t most);
  // The number that the statement finds, 0 if no row.
  absl::StatusOr<int64_t> Number(Statement& statement);

  Connection& connection_;
  Statement insert_, list_oldest_, oldest_, newest_, delete_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_EVENT_WRITER_H_
