#include "db/sqlite_measurements.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/refusals.h"

namespace coppice {
namespace {

// Bits of a history row's key that number its port.
constexpr int kHistoryPortBits = 24;
// Of each of kHistoryResolutions.
constexpr std::array kHistoryTables = {"reading_history", "minute_history", "hour_history"};

constexpr int64_t kMaxPorts = (int64_t{1} << kHistoryPortBits) - 1;

size_t PlaceOf(HistoryResolution resolution) { return static_cast<size_t>(resolution) - 1; }

const char* DirectionName(bool from_b) { return from_b ? "b-to-a" : "a-to-b"; }

void BindCounts(Statement& statement, const PortCounterRecord& port) {
  for (const uint64_t count :
       {port.sent_bytes, port.received_bytes, port.sent_packets, port.received_packets,
        port.sent_wait_ticks, port.symbol_errors, port.link_recoveries, port.link_downed,
        port.receive_errors, port.remote_physical_errors, port.relay_errors, port.send_discards,
        port.send_constraint_errors, port.receive_constraint_errors, port.integrity_errors,
        port.buffer_overruns, port.vl15_dropped, uint64_t{port.is_extended}}) {
    statement.Bind(static_cast<int64_t>(count));
  }
  statement.Bind(port.sent_bytes_per_second).Bind(port.received_bytes_per_second).Bind(port.read);
}

// NULL where the peak is the mean, as in every single reading.
void BindPeak(Statement& statement, uint64_t peak, uint64_t bytes, int64_t length_ms) {
  const double mean = static_cast<double>(bytes) * 1e3 / static_cast<double>(length_ms);
  const bool is_mean =
      length_ms > 0 && std::abs(static_cast<double>(peak) - mean) <= 1 + mean / 1e3;
  is_mean ? statement.BindNull() : statement.Bind(static_cast<int64_t>(peak));
}

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

// Whether the slot's label lies in the asked time.
bool IsAsked(const HistoryQuery& query, const HistorySlot& slot) {
  return slot.start >= query.start && slot.start < query.end;
}

// The point of one slot, `row` being the port's, if there is one; nullopt: nothing is known.
std::optional<HistoryPoint> PointOf(const HistorySlot& slot, const HistoryRow* row) {
  if (row == nullptr) return HistoryPoint{slot.start, slot.length};
  if (row->length <= absl::ZeroDuration()) return std::nullopt;
  // A reading after ones that are missing tells of the time since the last that came.
  const bool is_longer =
      slot.resolution == HistoryResolution::kReading && row->length > slot.length;
  return HistoryPoint{is_longer ? slot.start - (row->length - slot.length) : slot.start,
                      row->length,
                      row->sent_bytes,
                      row->received_bytes,
                      row->peak_sent_per_second,
                      row->peak_received_per_second,
                      row->errors};
}

// Sorts by time and adds up what has the same label. O(n log n).
std::vector<HistoryPoint> MergePoints(std::vector<HistoryPoint> points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const auto& a, const auto& b) { return a.start < b.start; });
  std::vector<HistoryPoint> merged;
  for (const HistoryPoint& point : points) {
    if (merged.empty() || merged.back().start != point.start) {
      merged.push_back(point);
      continue;
    }
    HistoryPoint& sum = merged.back();
    sum.length += point.length;
    sum.sent_bytes += point.sent_bytes;
    sum.received_bytes += point.received_bytes;
    sum.peak_sent_per_second = std::max(sum.peak_sent_per_second, point.peak_sent_per_second);
    sum.peak_received_per_second =
        std::max(sum.peak_received_per_second, point.peak_received_per_second);
    sum.errors += point.errors;
  }
  return merged;
}

}  // namespace

absl::Status MeasurementWriter::Prepare() {
  ASSIGN_OR_RETURN(list_ports_,
                   connection_.Prepare("SELECT id, node_guid, port FROM port_counter"));
  ASSIGN_OR_RETURN(insert_port_, connection_.Prepare(R"sql(
      INSERT INTO port_counter VALUES
          (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))sql"));
  ASSIGN_OR_RETURN(update_port_, connection_.Prepare(R"sql(
      UPDATE port_counter SET sent_bytes = ?, received_bytes = ?, sent_packets = ?,
          received_packets = ?, sent_wait_ticks = ?, symbol_errors = ?, link_recoveries = ?,
          link_downed = ?, receive_errors = ?, remote_physical_errors = ?, relay_errors = ?,
          send_discards = ?, send_constraint_errors = ?, receive_constraint_errors = ?,
          integrity_errors = ?, buffer_overruns = ?, vl15_dropped = ?, is_extended = ?,
          sent_bytes_per_second = ?, received_bytes_per_second = ?, read_ns = ?
      WHERE id = ?)sql"));
  ASSIGN_OR_RETURN(insert_load_, connection_.Prepare(R"sql(
      INSERT INTO link_load (average, peak, peak_ns, updated_ns, link_id, direction)
      VALUES (?, ?, ?, ?, ?, ?))sql"));
  ASSIGN_OR_RETURN(update_load_, connection_.Prepare(R"sql(
      UPDATE link_load SET average = ?, peak = ?, peak_ns = ?, updated_ns = ?
      WHERE link_id = ? AND direction = ?)sql"));
  ASSIGN_OR_RETURN(find_link_, connection_.Prepare("SELECT count(*) FROM link WHERE id = ?"));
  return PrepareHistory();
}

absl::Status MeasurementWriter::PrepareHistory() {
  ASSIGN_OR_RETURN(last_slot_,
                   connection_.Prepare("SELECT max(slot) FROM history_slot WHERE resolution = ?"));
  ASSIGN_OR_RETURN(first_slot_,
                   connection_.Prepare("SELECT min(slot) FROM history_slot WHERE resolution = ?"));
  ASSIGN_OR_RETURN(insert_slot_,
                   connection_.Prepare("INSERT INTO history_slot VALUES (?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(list_slots_, connection_.Prepare(R"sql(
      SELECT slot, length_ns FROM history_slot WHERE resolution = ? ORDER BY slot DESC)sql"));
  ASSIGN_OR_RETURN(
      delete_slots_,
      connection_.Prepare("DELETE FROM history_slot WHERE resolution = ? AND slot <= ?"));
  for (size_t i = 0; i < insert_row_.size(); ++i) {
    const std::string table = kHistoryTables[i];
    ASSIGN_OR_RETURN(insert_row_[i],
                     connection_.Prepare(absl::StrCat("INSERT OR REPLACE INTO ", table,
                                                      " VALUES (?, ?, ?, ?, ?, ?, ?)")));
    ASSIGN_OR_RETURN(delete_rows_[i], connection_.Prepare(absl::StrCat(
                                          "DELETE FROM ", table, " WHERE id IN (SELECT id FROM ",
                                          table, " WHERE id < ? ORDER BY id LIMIT ?)")));
  }
  return absl::OkStatus();
}

void MeasurementWriter::RolledBack() {
  // Others may be left in the transaction, so has_new_ports_ stays.
  if (has_new_ports_) has_ports_ = false;
}

absl::Status MeasurementWriter::LoadPorts() {
  ports_.clear();
  last_port_ = 0;
  RETURN_IF_ERROR(list_ports_.ForEach([&](const Statement& row) {
    last_port_ = std::max(last_port_, row.Integer(0));
    ports_[{row.GuidAt(1), static_cast<uint8_t>(row.Integer(2))}] = row.Integer(0);
  }));
  has_ports_ = true;
  return absl::OkStatus();
}

absl::Status MeasurementWriter::Apply(const PutCounters& put) {
  if (!has_ports_) RETURN_IF_ERROR(LoadPorts());
  for (const PortCounterRecord& port : put.counters) RETURN_IF_ERROR(PutPort(port));
  for (const LinkLoadRecord& load : put.loads) RETURN_IF_ERROR(PutLoad(load));
  for (const HistoryPart& part : put.history) RETURN_IF_ERROR(PutPart(part));
  for (const HistorySlot& slot : put.closed) RETURN_IF_ERROR(Close(slot));
  return absl::OkStatus();
}

absl::Status MeasurementWriter::PutPort(const PortCounterRecord& port) {
  const auto [place, is_new] = ports_.try_emplace({port.node, port.port}, last_port_ + 1);
  if (!is_new) {
    BindCounts(update_port_, port);
    return update_port_.Bind(place->second).Run();
  }
  has_new_ports_ = true;
  if (++last_port_ > kMaxPorts) {
    return absl::ResourceExhaustedError(absl::StrCat(PortName(port.node, port.port), ": more than ",
                                                     kMaxPorts,
                                                     " ports were counted: begin a new database"));
  }
  insert_port_.Bind(last_port_).Bind(port.node).Bind(int64_t{port.port});
  BindCounts(insert_port_, port);
  return insert_port_.Run();
}

absl::Status MeasurementWriter::PutLoad(const LinkLoadRecord& load) {
  for (Statement* statement : {&update_load_, &insert_load_}) {
    statement->Bind(load.average).Bind(load.peak).Bind(load.peaked).Bind(load.updated);
    absl::Status status = statement->Bind(load.link).Bind(DirectionName(load.from_b)).Run();
    if (absl::IsInternal(status)) {
      ASSIGN_OR_RETURN(const int64_t known, find_link_.Bind(load.link).Number());
      return known != 0 ? status : NoSuchLinkId(load.link);
    }
    RETURN_IF_ERROR(status);
    if (connection_.changes() > 0) break;
  }
  return absl::OkStatus();
}

absl::Status MeasurementWriter::PutPart(const HistoryPart& part) {
  for (const HistoryRow& row : part.rows) {
    if (!ports_.contains({row.node, row.port})) return NoCounters(row.node, row.port);
  }
  const int64_t place = static_cast<int64_t>(part.resolution);
  ASSIGN_OR_RETURN(const int64_t last, last_slot_.Bind(place).Number());
  if (part.slot <= last) return SlotClosed(part.resolution, part.slot, last);
  Statement& insert = insert_row_[PlaceOf(part.resolution)];
  for (const HistoryRow& row : part.rows) {
    const int64_t length_ms = absl::ToInt64Milliseconds(row.length);
    insert.Bind((part.slot << kHistoryPortBits) + ports_.at({row.node, row.port}));
    insert.Bind(length_ms).Bind(static_cast<int64_t>(row.sent_bytes));
    insert.Bind(static_cast<int64_t>(row.received_bytes));
    BindPeak(insert, row.peak_sent_per_second, row.sent_bytes, length_ms);
    BindPeak(insert, row.peak_received_per_second, row.received_bytes, length_ms);
    RETURN_IF_ERROR(insert.Bind(static_cast<int64_t>(row.errors)).Run());
  }
  return absl::OkStatus();
}

absl::Status MeasurementWriter::Close(const HistorySlot& slot) {
  const int64_t place = static_cast<int64_t>(slot.resolution);
  ASSIGN_OR_RETURN(const int64_t last, last_slot_.Bind(place).Number());
  if (slot.slot <= last) return SlotClosed(slot.resolution, slot.slot, last);
  insert_slot_.Bind(place).Bind(slot.slot).Bind(slot.start);
  return insert_slot_.Bind(absl::ToInt64Nanoseconds(slot.length)).Run();
}

absl::StatusOr<int64_t> MeasurementWriter::LastToDrop(HistoryResolution resolution) {
  const HistoryLimit limit = LimitOf(resolution);
  absl::Duration kept;
  int64_t slots = 0;
  list_slots_.Bind(static_cast<int64_t>(resolution));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, list_slots_.Step());
    if (!row) return 0;
    if (slots == limit.slots || kept >= limit.length) break;
    kept += absl::Nanoseconds(list_slots_.Integer(1));
    ++slots;
  }
  const int64_t last = list_slots_.Integer(0);
  list_slots_.Reset();
  return last;
}

absl::StatusOr<int64_t> MeasurementWriter::DropRows(HistoryResolution resolution, int64_t most) {
  const int64_t place = static_cast<int64_t>(resolution);
  ASSIGN_OR_RETURN(const int64_t last, LastToDrop(resolution));
  if (last > 0) RETURN_IF_ERROR(delete_slots_.Bind(place).Bind(last).Run());
  ASSIGN_OR_RETURN(const int64_t first, first_slot_.Bind(place).Number());
  Statement& drop = delete_rows_[PlaceOf(resolution)];
  RETURN_IF_ERROR(drop.Bind(first << kHistoryPortBits).Bind(most).Run());
  return connection_.changes();
}

absl::Status MeasurementWriter::Apply(const PruneHistory& prune) {
  int64_t most = prune.rows;
  for (const HistoryResolution resolution : kHistoryResolutions) {
    ASSIGN_OR_RETURN(const int64_t dropped, DropRows(resolution, most));
    most -= dropped;
  }
  return absl::OkStatus();
}

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
  RETURN_IF_ERROR(loads_.ForEach([&](const Statement& row) {
    stored.loads.push_back({row.Integer(0), row.Integer(1) != 0, row.Real(2), row.Real(3),
                            row.TimeAt(4), row.TimeAt(5)});
  }));
  for (size_t i = 0; i < row_.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t closed, last_slot_.Bind(static_cast<int64_t>(i) + 1).Number());
    ASSIGN_OR_RETURN(const int64_t last, last_row_[i].Number());
    stored.last_slot[i] = std::max(closed, last >> kHistoryPortBits);
  }
  return stored;
}

absl::StatusOr<std::vector<PortCounterRecord>> MeasurementReader::Counters(Guid node) {
  std::vector<PortCounterRecord> ports;
  counters_.Bind(node);
  RETURN_IF_ERROR(
      counters_.ForEach([&](const Statement& row) { ports.push_back(CountersAt(node, row)); }));
  return ports;
}

absl::StatusOr<std::vector<HistorySlot>> MeasurementReader::AskedSlots(const HistoryQuery& query) {
  std::vector<HistorySlot> slots;
  slots_.Bind(static_cast<int64_t>(query.resolution));
  RETURN_IF_ERROR(slots_.ForEach([&](const Statement& row) {
    const HistorySlot slot{query.resolution, row.Integer(0), row.TimeAt(1),
                           absl::Nanoseconds(row.Integer(2))};
    if (IsAsked(query, slot)) slots.push_back(slot);
  }));
  return slots;
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

namespace {

constexpr char kTcp[] = "tcp", kVerbs[] = "verbs";

}  // namespace

absl::Status DistanceWriter::Prepare() {
  ASSIGN_OR_RETURN(
      insert_,
      connection_.Prepare("INSERT OR REPLACE INTO distance VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(drop_,
                   connection_.Prepare("DELETE FROM distance WHERE host_a = ? AND host_b = ?"));
  return absl::OkStatus();
}

absl::Status DistanceWriter::Apply(const PutDistances& put) {
  for (const auto& [a, b] : put.drop) RETURN_IF_ERROR(drop_.Bind(a).Bind(b).Run());
  for (const DistanceRecord& d : put.put) {
    insert_.Bind(d.host_a).Bind(d.host_b).Bind(d.latency_us).Bind(d.latency_spread_us);
    insert_.Bind(d.bandwidth_gbps).Bind(d.bandwidth_spread_gbps).Bind(int64_t{d.samples});
    insert_.Bind(d.measured);
    RETURN_IF_ERROR(insert_.Bind(d.transport == Transport::kVerbs ? kVerbs : kTcp).Run());
  }
  return absl::OkStatus();
}

absl::Status DistanceReader::Prepare() {
  ASSIGN_OR_RETURN(list_, connection_.Prepare(R"sql(
      SELECT host_a, host_b, latency_us, latency_spread_us, bandwidth_gbps, bandwidth_spread_gbps,
             samples, measured_ns, transport FROM distance ORDER BY host_a, host_b)sql"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DistanceRecord>> DistanceReader::List() {
  std::vector<DistanceRecord> distances;
  RETURN_IF_ERROR(list_.ForEach([&](const Statement& row) {
    DistanceRecord& record = distances.emplace_back();
    record.host_a = std::string(row.Text(0));
    record.host_b = std::string(row.Text(1));
    record.latency_us = row.Real(2);
    record.latency_spread_us = row.Real(3);
    record.bandwidth_gbps = row.Real(4);
    record.bandwidth_spread_gbps = row.Real(5);
    record.samples = row.Word(6);
    record.measured = row.TimeAt(7);
    record.transport = row.Text(8) == kVerbs ? Transport::kVerbs : Transport::kTcp;
  }));
  return distances;
}

}  // namespace coppice
