// Measured distances as SQL: the writer's part and the reader's.
#ifndef COPPICE_DB_SQLITE_DISTANCES_H_
#define COPPICE_DB_SQLITE_DISTANCES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/fabric_records.h"
#include "db/sqlite_connection.h"

namespace coppice {

// Belongs to the writer's thread; works within its transaction. Contracts as of the mutations.
class DistanceWriter {
 public:
  explicit DistanceWriter(Connection& connection) : connection_(connection) {}
  // The connection must hold the newest schema.
  absl::Status Prepare();
  absl::Status Put(const PutDistances& put);

 private:
  Connection& connection_;
  Statement insert_, drop_;
};

// As SqliteReader, part of which it is. Contracts as of Store.
class DistanceReader {
 public:
  explicit DistanceReader(Connection& connection) : connection_(connection) {}
  absl::Status Prepare();
  absl::StatusOr<std::vector<DistanceRecord>> List();

 private:
  Connection& connection_;
  Statement list_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_DISTANCES_H_
