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
  for (const PortCounterField& field : kPortCounterFields) statement.Bind(port.*field.count);
  statement.Bind(port.is_extended, port.sent_bytes_per_second, port.received_bytes_per_second,
                 port.read);
}

// NULL where the peak is the mean, as in every single reading.
void BindPeak(Statement& statement, uint64_t peak, uint64_t bytes, int64_t length_ms) {
  const double mean = static_cast<double>(bytes) * 1e3 / static_cast<double>(length_ms);
  const bool is_mean =
      length_ms > 0 && std::abs(static_cast<double>(peak) - mean) <= 1 + mean / 1e3;
  is_mean ? statement.Bind(nullptr) : statement.Bind(peak);
}

constexpr char kCounters[] = R"sql(
    SELECT node_guid, port, is_extended, sent_bytes_per_second, received_bytes_per_second, read_ns,
           sent_bytes, received_bytes, sent_packets, received_packets, sent_wait_ticks,
           symbol_errors, link_recoveries, link_downed, receive_errors, remote_physical_errors,
           relay_errors, send_discards, send_constraint_errors, receive_constraint_errors,
           integrity_errors, buffer_overruns, vl15_dropped
    FROM port_counter WHERE node_guid = ? ORDER BY port)sql";

void ReadCounters(const Statement& row, PortCounterRecord& port) {
  row.Read(port.node, port.port, port.is_extended, port.sent_bytes_per_second,
           port.received_bytes_per_second, port.read);
  int column = 6;
  for (const PortCounterField& field : kPortCounterFields) {
    port.*field.count = static_cast<uint64_t>(row.Integer(column++));
  }
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

// Of a table of history.
std::string InsertInto(const char* table) {
  return absl::StrCat("INSERT OR REPLACE INTO ", table, " VALUES (?, ?, ?, ?, ?, ?, ?)");
}
std::string DeleteFrom(const char* table) {
  return absl::StrCat("DELETE FROM ", table, " WHERE id IN (SELECT id FROM ", table,
                      " WHERE id < ? ORDER BY id LIMIT ?)");
}
std::string LastOf(const char* table) { return absl::StrCat("SELECT max(id) FROM ", table); }
std::string RowOf(const char* table) {
  return absl::StrCat(
      "SELECT length_ms, sent_bytes, received_bytes, peak_sent_per_second, "
      "peak_received_per_second, errors FROM ",
      table, " WHERE id = ?");
}

}  // namespace

MeasurementWriter::MeasurementWriter(SqliteConnection& connection)
    : list_ports_(connection, "SELECT id, node_guid, port FROM port_counter"),
      insert_port_(connection, R"sql(
      INSERT INTO port_counter VALUES
          (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))sql"),
      update_port_(connection, R"sql(
      UPDATE port_counter SET sent_bytes = ?, received_bytes = ?, sent_packets = ?,
          received_packets = ?, sent_wait_ticks = ?, symbol_errors = ?, link_recoveries = ?,
          link_downed = ?, receive_errors = ?, remote_physical_errors = ?, relay_errors = ?,
          send_discards = ?, send_constraint_errors = ?, receive_constraint_errors = ?,
          integrity_errors = ?, buffer_overruns = ?, vl15_dropped = ?, is_extended = ?,
          sent_bytes_per_second = ?, received_bytes_per_second = ?, read_ns = ?
      WHERE id = ?)sql"),
      insert_load_(connection, R"sql(
      INSERT INTO link_load (average, peak, peak_ns, updated_ns, link_id, direction)
      VALUES (?, ?, ?, ?, ?, ?))sql"),
      update_load_(connection, R"sql(
      UPDATE link_load SET average = ?, peak = ?, peak_ns = ?, updated_ns = ?
      WHERE link_id = ? AND direction = ?)sql"),
      find_link_(connection, "SELECT count(*) FROM link WHERE id = ?"),
      last_slot_(connection, "SELECT max(slot) FROM history_slot WHERE resolution = ?"),
      first_slot_(connection, "SELECT min(slot) FROM history_slot WHERE resolution = ?"),
      insert_slot_(connection, "INSERT INTO history_slot VALUES (?, ?, ?, ?)"),
      list_slots_(connection, R"sql(
      SELECT slot, length_ns FROM history_slot WHERE resolution = ? ORDER BY slot DESC)sql"),
      delete_slots_(connection, "DELETE FROM history_slot WHERE resolution = ? AND slot <= ?"),
      insert_row_{{{connection, InsertInto(kHistoryTables[0])},
                   {connection, InsertInto(kHistoryTables[1])},
                   {connection, InsertInto(kHistoryTables[2])}}},
      delete_rows_{{{connection, DeleteFrom(kHistoryTables[0])},
                    {connection, DeleteFrom(kHistoryTables[1])},
                    {connection, DeleteFrom(kHistoryTables[2])}}} {}

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
    return update_port_.Run(place->second);
  }
  has_new_ports_ = true;
  if (++last_port_ > kMaxPorts) {
    return absl::ResourceExhaustedError(absl::StrCat(PortName(port.node, port.port), ": more than ",
                                                     kMaxPorts,
                                                     " ports were counted: begin a new database"));
  }
  insert_port_.Bind(last_port_, port.node, port.port);
  BindCounts(insert_port_, port);
  return insert_port_.Run();
}

absl::Status MeasurementWriter::PutLoad(const LinkLoadRecord& load) {
  for (Statement* statement : {&update_load_, &insert_load_}) {
    absl::Status status = statement->Run(load.average, load.peak, load.peaked, load.updated,
                                         load.link, DirectionName(load.from_b));
    if (absl::IsInternal(status)) {
      ASSIGN_OR_RETURN(const int64_t known, find_link_.Number(load.link));
      return known != 0 ? status : NoSuchLinkId(load.link);
    }
    RETURN_IF_ERROR(status);
    if (statement->changes() > 0) break;
  }
  return absl::OkStatus();
}

absl::Status MeasurementWriter::PutPart(const HistoryPart& part) {
  for (const HistoryRow& row : part.rows) {
    if (!ports_.contains({row.node, row.port})) return NoCounters(row.node, row.port);
  }
  const int64_t place = static_cast<int64_t>(part.resolution);
  ASSIGN_OR_RETURN(const int64_t last, last_slot_.Number(place));
  if (part.slot <= last) return SlotClosed(part.resolution, part.slot, last);
  Statement& insert = insert_row_[PlaceOf(part.resolution)];
  for (const HistoryRow& row : part.rows) {
    const int64_t length_ms = absl::ToInt64Milliseconds(row.length);
    insert.Bind((part.slot << kHistoryPortBits) + ports_.at({row.node, row.port}), length_ms,
                row.sent_bytes, row.received_bytes);
    BindPeak(insert, row.peak_sent_per_second, row.sent_bytes, length_ms);
    BindPeak(insert, row.peak_received_per_second, row.received_bytes, length_ms);
    RETURN_IF_ERROR(insert.Run(row.errors));
  }
  return absl::OkStatus();
}

absl::Status MeasurementWriter::Close(const HistorySlot& slot) {
  const int64_t place = static_cast<int64_t>(slot.resolution);
  ASSIGN_OR_RETURN(const int64_t last, last_slot_.Number(place));
  if (slot.slot <= last) return SlotClosed(slot.resolution, slot.slot, last);
  return insert_slot_.Run(place, slot.slot, slot.start, slot.length);
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
  if (last > 0) RETURN_IF_ERROR(delete_slots_.Run(place, last));
  ASSIGN_OR_RETURN(const int64_t first, first_slot_.Number(place));
  Statement& drop = delete_rows_[PlaceOf(resolution)];
  RETURN_IF_ERROR(drop.Run(first << kHistoryPortBits, most));
  return drop.changes();
}

absl::Status MeasurementWriter::Apply(const PruneHistory& prune) {
  int64_t most = prune.rows;
  for (const HistoryResolution resolution : kHistoryResolutions) {
    ASSIGN_OR_RETURN(const int64_t dropped, DropRows(resolution, most));
    most -= dropped;
  }
  return absl::OkStatus();
}

MeasurementReader::MeasurementReader(SqliteConnection& connection)
    : begin_(connection, "BEGIN"),
      commit_(connection, "COMMIT"),
      loads_(connection, R"sql(
      SELECT link_id, direction = 'b-to-a', average, peak, peak_ns, updated_ns
      FROM link_load ORDER BY link_id, direction)sql"),
      last_slot_(connection, "SELECT max(slot) FROM history_slot WHERE resolution = ?"),
      counters_(connection, kCounters),
      find_port_(connection, "SELECT id FROM port_counter WHERE node_guid = ? AND port = ?"),
      slots_(connection, R"sql(
      SELECT slot, start_ns, length_ns FROM history_slot WHERE resolution = ? ORDER BY slot)sql"),
      last_row_{{{connection, LastOf(kHistoryTables[0])},
                 {connection, LastOf(kHistoryTables[1])},
                 {connection, LastOf(kHistoryTables[2])}}},
      row_{{{connection, RowOf(kHistoryTables[0])},
            {connection, RowOf(kHistoryTables[1])},
            {connection, RowOf(kHistoryTables[2])}}} {}

absl::StatusOr<StoredLoad> MeasurementReader::Load() {
  StoredLoad stored;
  ASSIGN_OR_RETURN(
      stored.loads, loads_.List<LinkLoadRecord>([](const Statement& row, LinkLoadRecord& load) {
        row.Read(load.link, load.from_b, load.average, load.peak, load.peaked, load.updated);
      }));
  for (size_t i = 0; i < row_.size(); ++i) {
    ASSIGN_OR_RETURN(const int64_t closed, last_slot_.Number(i + 1));
    ASSIGN_OR_RETURN(const int64_t last, last_row_[i].Number());
    stored.last_slot[i] = std::max(closed, last >> kHistoryPortBits);
  }
  return stored;
}

absl::StatusOr<std::vector<PortCounterRecord>> MeasurementReader::Counters(Guid node) {
  return counters_.Bind(node).List<PortCounterRecord>(ReadCounters);
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
  ASSIGN_OR_RETURN(const bool found, find.Step((slot.slot << kHistoryPortBits) + port));
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
  ASSIGN_OR_RETURN(const int64_t port, find_port_.Number(query.node, query.port));
  if (port == 0) return std::vector<HistoryPoint>();
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

constexpr const char* kTransports[] = {"tcp", "verbs"};

}  // namespace

DistanceWriter::DistanceWriter(SqliteConnection& connection)
    : insert_(connection, "INSERT OR REPLACE INTO distance VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      drop_(connection, "DELETE FROM distance WHERE host_a = ? AND host_b = ?") {}

absl::Status DistanceWriter::Apply(const PutDistances& put) {
  for (const auto& [a, b] : put.drop) RETURN_IF_ERROR(drop_.Run(a, b));
  for (const DistanceRecord& d : put.put) {
    RETURN_IF_ERROR(insert_.Run(d.host_a, d.host_b, d.latency_us, d.latency_spread_us,
                                d.bandwidth_gbps, d.bandwidth_spread_gbps, d.samples, d.measured,
                                NameOf(kTransports, d.transport)));
  }
  return absl::OkStatus();
}

DistanceReader::DistanceReader(SqliteConnection& connection)
    : list_(connection, R"sql(
      SELECT host_a, host_b, latency_us, latency_spread_us, bandwidth_gbps, bandwidth_spread_gbps,
             samples, measured_ns, transport = 'verbs' FROM distance ORDER BY host_a, host_b)sql") {
}

absl::StatusOr<std::vector<DistanceRecord>> DistanceReader::List() {
  return list_.List<DistanceRecord>([](const Statement& row, DistanceRecord& d) {
    bool is_verbs = false;
    row.Read(d.host_a, d.host_b, d.latency_us, d.latency_spread_us, d.bandwidth_gbps,
             d.bandwidth_spread_gbps, d.samples, d.measured, is_verbs);
    d.transport = is_verbs ? Transport::kVerbs : Transport::kTcp;
  });
}

}  // namespace coppice
