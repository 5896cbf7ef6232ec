// Orders of jobs' ranks as SQL: the writer's part and the reader's. The end of a job drops its
// order by a trigger, in the transaction of the end.
#ifndef COPPICE_DB_SQLITE_ORDERS_H_
#define COPPICE_DB_SQLITE_ORDERS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/job_records.h"
#include "db/sqlite_connection.h"

namespace coppice {

// Belongs to the writer's thread; works within its transaction. Contracts as of the mutations.
class OrderWriter {
 public:
  explicit OrderWriter(Connection& connection) : connection_(connection) {}
  // The connection must hold the newest schema.
  absl::Status Prepare();
  absl::Status Put(const PutOrder& put);

 private:
  Connection& connection_;
  Statement find_active_job_, count_others_, put_;
};

// As SqliteReader, part of which it is. Contracts as of Store.
class OrderReader {
 public:
  explicit OrderReader(Connection& connection) : connection_(connection) {}
  absl::Status Prepare();
  // DATA_LOSS: the row is not what the writer makes.
  absl::StatusOr<OrderRecord> Get(JobId job);

 private:
  absl::StatusOr<OrderRecord> RecordAt(const Statement& row) const;

  Connection& connection_;
  Statement find_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_ORDERS_H_
