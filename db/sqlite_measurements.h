// The tables of what was measured: counters, load and history, and distances.
//
// Counters, load and history as SQL: the writer's part and the reader's. One statement a row, on
// rows that are found by small numbers.
//
// A history row's key is slot * 2^24 + the port's number, so that rows of new slots are appended
// and those of old ones go from the other end, whose pages are used again. The numbers of ports
// are remembered here, as one look-up a row would cost more than the row.
#ifndef COPPICE_DB_SQLITE_MEASUREMENTS_H_
#define COPPICE_DB_SQLITE_MEASUREMENTS_H_

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/fabric_records.h"
#include "db/sqlite_connection.h"
#include "db/store.h"

namespace coppice {

// Belongs to the writer's thread; works within its transaction.
class MeasurementWriter {
 public:
  explicit MeasurementWriter(SqliteConnection& connection);

  absl::Status Apply(const PutCounters& put);
  absl::Status Apply(const PruneHistory& prune);

  // What became of the transaction. Back: numbers that it gave to ports are forgotten.
  void Committed() { has_new_ports_ = false; }
  void RolledBack();

 private:
  absl::Status LoadPorts();
  absl::Status PutPort(const PortCounterRecord& port);
  absl::Status PutLoad(const LinkLoadRecord& load);
  absl::Status PutPart(const HistoryPart& part);
  absl::Status Close(const HistorySlot& slot);
  // The highest slot that goes; 0: none does.
  absl::StatusOr<int64_t> LastToDrop(HistoryResolution resolution);
  absl::StatusOr<int64_t> DropRows(HistoryResolution resolution, int64_t most);

  Statement list_ports_, insert_port_, update_port_;
  Statement insert_load_, update_load_, find_link_;
  Statement last_slot_, first_slot_, insert_slot_, list_slots_, delete_slots_;
  std::array<Statement, 3> insert_row_, delete_rows_;  // [resolution - 1]

  bool has_ports_ = false;      // ports_ holds what the table does
  bool has_new_ports_ = false;  // some are not committed
  int64_t last_port_ = 0;
  absl::flat_hash_map<std::pair<Guid, uint8_t>, int64_t> ports_;
};

// As SqliteReader, part of which it is. Contracts as of Store.
class MeasurementReader {
 public:
  explicit MeasurementReader(SqliteConnection& connection);

  absl::StatusOr<StoredLoad> Load();
  absl::StatusOr<std::vector<PortCounterRecord>> Counters(Guid node);
  // One look-up for each slot that was asked for: 3,600 at most.
  absl::StatusOr<std::vector<HistoryPoint>> History(const HistoryQuery& query);

 private:
  absl::StatusOr<std::vector<HistorySlot>> AskedSlots(const HistoryQuery& query);
  // The row of the port's number; false: there is none.
  absl::StatusOr<bool> FindRow(const HistorySlot& slot, int64_t port, HistoryRow& row);

  Statement begin_, commit_;
  Statement loads_, last_slot_, counters_, find_port_, slots_;
  std::array<Statement, 3> last_row_, row_;  // [resolution - 1]
};

// Measured distances as SQL: the writer's part and the reader's.

// Belongs to the writer's thread; works within its transaction. Contracts as of the mutations.
class DistanceWriter {
 public:
  explicit DistanceWriter(SqliteConnection& connection);

  absl::Status Apply(const PutDistances& put);

 private:
  Statement insert_, drop_;
};

// As SqliteReader, part of which it is. Contracts as of Store.
class DistanceReader {
 public:
  explicit DistanceReader(SqliteConnection& connection);

  absl::StatusOr<std::vector<DistanceRecord>> List();

 private:
  Statement list_;
};

}  // namespace coppice

#endif  // COPPICE_DB_SQLITE_MEASUREMENTS_H_
