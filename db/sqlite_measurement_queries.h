// What a store answers about counters, load and history, as SQL.
#ifndef COPPICE_DB_SQLITE_MEASUREMENT_QUERIES_H_
#define COPPICE_DB_SQLITE_MEASUREMENT_QUERIES_H_

#include <array>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/sqlite_connection.h"
#include "db/store.h"

namespace coppice {

// As SqliteReader, part of which it is. Contracts as of Store.
class MeasurementReader {
 public:
  explicit MeasurementReader(Connection& connection) : connection_(connection) {}
  // The connection must hold the newest schema.
  absl::Status Prepare();

  absl::StatusOr<StoredLoad> Load();
  absl::StatusOr<std::vector<PortCounterRecord>> Counters(Guid node);
  // One look-up for each slot that was asked for: 3,600 at most.
  absl::StatusOr<std::vector<HistoryPoint>> History(const HistoryQuery& query);

 private:
  absl::StatusOr<std::vector<HistorySlot>> AskedSlots(const HistoryQuery& query);
  // The row of the port's number; false: there is none.
  absl::StatusOr<bool> FindRow(const HistorySlot& slot, int64_t port, HistoryRow& row);

  Connection& connection_;
  Statement begin_, commit_;
  Statement loads_, last_slot_, counters_, find_port_, slots_;
  std::array<Statement, 3> last_row_, row_;  // [resolution - 1]
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_MEASUREMENT_QUERIES_H_
