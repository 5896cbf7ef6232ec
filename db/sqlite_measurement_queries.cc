#include "db/sqlite_measurement_queries.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/history_points.h"
#include "db/sqlite_measurements.h"

namespace coppice {
namespace {

constexpr char kCounters[] = R"sql(
    SELECT port, is_extended, sent_bytes_per_second, received_bytes_per_second, read_ns, sent_bytes,
           received_bytes, sent_packets, received_packets, sent_wait_ticks, symbol_errors,
           link_recoveries, link_downed, receive_errors, remote_physical_errors, relay_errors,
           send_discards, send_constraint_errors, receive_constraint_errors, integrity_errors,
           buffer_overruns, vl15_dropped
    FROM port_counter WHERE node_guid = ? ORDER BY port)sql";

PortCounterRecord CountersAt(Guid node, const Statement& row) {
  PortCounterRecord port;
  port.node = node;
  port.port = static_cast<uint8_t>(row.Integer(0));
  port.is_extended = row.Integer(1) != 0;
  port.sent_bytes_per_second = row.Real(2);
  port.received_bytes_per_second = row.Real(3);
  port.read = row.TimeAt(4);
  int column = 5;
  for (uint64_t* count :
       {&port.sent_bytes, &port.received_bytes, &port.sent_packets, &port.received_packets,
        &port.sent_wait_ticks, &port.symbol_errors, &port.link_recoveries, &port.link_downed,
        &port.receive_errors, &port.remote_physical_errors, &port.relay_errors, &port.send_discards,
        &port.send_constraint_errors, &port.receive_constraint_errors, &port.integrity_errors,
        &port.buffer_overruns, &port.vl15_dropped}) {
    *count = static_cast<uint64_t>(row.Integer(column++));
  }
  return port;
}

// NULL: the mean.
uint64_t PeakAt(const Statement& row, int column, uint64_t bytes, int64_t length_ms) {
  if (!row.IsNull(column)) return static_cast<uint64_t>(row.Integer(column));
  const double mean = static_cast<double>(bytes) * 1e3 / static_cast<double>(length_ms);
  return static_cast<uint64_t>(std::llround(mean));
}

}  // namespace

absl::Status MeasurementReader::Prepare() {
  ASSIGN_OR_RETURN(begin_, connection_.Prepare("BEGIN"));
  ASSIGN_OR_RETURN(commit_, connection_.Prepare("COMMIT"));
  ASSIGN_OR_RETURN(loads_, connection_.Prepare(R"sql(
      SELECT link_id, direction = 'b-to-a', average, peak, peak_ns, updated_ns
      FROM link_load ORDER BY link_id, direction)sql"));
  ASSIGN_OR_RETURN(last_slot_,
                   connection_.Prepare("SELECT max(slot) FROM history_slot WHERE resolution = ?"));
  ASSIGN_OR_RETURN(counters_, connection_.Prepare(kCounters));
  ASSIGN_OR_RETURN(find_port_, connection_.Prepare(
                                   "SELECT id FROM port_counter WHERE node_guid = ? AND port = ?"));
  ASSIGN_OR_RETURN(slots_, connection_.Prepare(R"sql(
      SELECT slot, start_ns, length_ns FROM history_slot WHERE resolution = ? ORDER BY slot)sql"));
  for (size_t i = 0; i < row_.size(); ++i) {
    const std::string table = kHistoryTables[i];
    ASSIGN_OR_RETURN(last_row_[i],
                     connection_.Prepare(absl::StrCat("SELECT max(id) FROM ", table)));
    ASSIGN_OR_RETURN(row_[i], connection_.Prepare(absl::StrCat(
                                  "SELECT length_ms, sent_bytes, received_bytes, "
                                  "peak_sent_per_second, peak_received_per_second, errors FROM ",
                                  table, " WHERE id = ?")));
  }
  return absl::OkStatus();
}

absl::StatusOr<StoredLoad> MeasurementReader::Load() {
  StoredLoad stored;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, loads_.Step());
    if (!row) break;
    stored.loads.push_back({loads_.Integer(0), loads_.Integer(1) != 0, loads_.Real(2),
                            loads_.Real(3), loads_.TimeAt(4), loads_.TimeAt(5)});
  }
  for (size_t i = 0; i < row_.size(); ++i) {
    RETURN_IF_ERROR(last_slot_.Bind(static_cast<int64_t>(i) + 1).Step().status());
    const int64_t closed = last_slot_.Integer(0);  // NULL reads as 0
    last_slot_.Reset();
    RETURN_IF_ERROR(last_row_[i].Step().status());
    const int64_t begun = last_row_[i].Integer(0) >> kHistoryPortBits;
    last_row_[i].Reset();
    stored.last_slot[i] = std::max(closed, begun);
  }
  return stored;
}

absl::StatusOr<std::vector<PortCounterRecord>> MeasurementReader::Counters(Guid node) {
  std::vector<PortCounterRecord> ports;
  counters_.Bind(node);
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, counters_.Step());
    if (!row) return ports;
    ports.push_back(CountersAt(node, counters_));
  }
}

absl::StatusOr<std::vector<HistorySlot>> MeasurementReader::AskedSlots(const HistoryQuery& query) {
  std::vector<HistorySlot> slots;
  slots_.Bind(static_cast<int64_t>(query.resolution));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, slots_.Step());
    if (!row) return slots;
    const HistorySlot slot{query.resolution, slots_.Integer(0), slots_.TimeAt(1),
                           absl::Nanoseconds(slots_.Integer(2))};
    if (IsAsked(query, slot)) slots.push_back(slot);
  }
}

absl::StatusOr<bool> MeasurementReader::FindRow(const HistorySlot& slot, int64_t port,
                                                HistoryRow& row) {
  Statement& find = row_[static_cast<size_t>(slot.resolution) - 1];
  find.Bind((slot.slot << kHistoryPortBits) + port);
  ASSIGN_OR_RETURN(const bool found, find.Step());
  if (!found) return false;
  const int64_t length_ms = find.Integer(0);
  row.length = absl::Milliseconds(length_ms);
  row.sent_bytes = static_cast<uint64_t>(find.Integer(1));
  row.received_bytes = static_cast<uint64_t>(find.Integer(2));
  row.peak_sent_per_second = PeakAt(find, 3, row.sent_bytes, length_ms);
  row.peak_received_per_second = PeakAt(find, 4, row.received_bytes, length_ms);
  row.errors = static_cast<uint64_t>(find.Integer(5));
  find.Reset();
  return true;
}

absl::StatusOr<std::vector<HistoryPoint>> MeasurementReader::History(const HistoryQuery& query) {
  find_port_.Bind(query.node);
  ASSIGN_OR_RETURN(const bool is_known, find_port_.Bind(int64_t{query.port}).Step());
  if (!is_known) return std::vector<HistoryPoint>();
  const int64_t port = find_port_.Integer(0);
  find_port_.Reset();
  // Slots that go while they are read would count as slots in which nothing moved.
  RETURN_IF_ERROR(begin_.Run());
  std::vector<HistoryPoint> points;
  absl::StatusOr<std::vector<HistorySlot>> slots = AskedSlots(query);
  absl::Status status = slots.status();
  for (size_t i = 0; status.ok() && i < slots->size(); ++i) {
    HistoryRow row;
    const absl::StatusOr<bool> found = FindRow((*slots)[i], port, row);
    status = found.status();
    if (!status.ok()) break;
    const auto point = PointOf((*slots)[i], *found ? &row : nullptr);
    if (point) points.push_back(*point);
  }
  slots_.Reset();
  RETURN_IF_ERROR(commit_.Run());
  RETURN_IF_ERROR(status);
  return MergePoints(std::move(points));
}

}  // namespace coppice
