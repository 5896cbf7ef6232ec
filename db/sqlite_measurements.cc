// Counters, load and history. One statement a row, on rows that are found by small numbers.
//
// A history row's key is slot * 2^24 + the port's number, so that rows of new slots are appended
// and those of old ones go from the other end, whose pages are used again.
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "db/sqlite_tables.h"

namespace coppice {
namespace {

// Bits of a history row's key that number its port.
constexpr int kHistoryPortBits = 24;
constexpr int64_t kMaxPorts = (int64_t{1} << kHistoryPortBits) - 1;

const char* TableOf(HistoryResolution resolution) {
  constexpr const char* kTables[] = {nullptr, "reading_history", "minute_history", "hour_history"};
  return NameOf(kTables, resolution);
}

void BindCounts(Statement& statement, const PortCounterRecord& port) {
  for (const PortCounterField& field : kPortCounterFields) statement.Bind(port.*field.count);
  statement.Bind(port.is_extended, port.sent_bytes_per_second, port.received_bytes_per_second,
                 port.read);
}

double MeanOf(uint64_t bytes, int64_t length_ms) {
  return static_cast<double>(bytes) * 1e3 / static_cast<double>(length_ms);
}

// NULL where the peak is the mean, as in every single reading.
void BindPeak(Statement& statement, uint64_t peak, uint64_t bytes, int64_t length_ms) {
  const double mean = MeanOf(bytes, length_ms);
  const bool is_mean =
      length_ms > 0 && std::abs(static_cast<double>(peak) - mean) <= 1 + mean / 1e3;
  is_mean ? statement.Bind(nullptr) : statement.Bind(peak);
}

uint64_t PeakAt(const Statement& row, int column, uint64_t bytes, int64_t length_ms) {
  if (!row.IsNull(column)) return static_cast<uint64_t>(row.Integer(column));
  return static_cast<uint64_t>(std::llround(MeanOf(bytes, length_ms)));
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

// The highest slot that is closed; 0: none is.
absl::StatusOr<int64_t> LastClosed(SqliteConnection& db, HistoryResolution resolution) {
  return db.Sql("SELECT max(slot) FROM history_slot WHERE resolution = ?")
      .Number(static_cast<int>(resolution));
}

absl::Status CheckOpen(SqliteConnection& db, HistoryResolution resolution, int64_t slot) {
  ASSIGN_OR_RETURN(const int64_t last, LastClosed(db, resolution));
  if (slot > last) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "history slot ", slot, " of resolution ", static_cast<int>(resolution),
      " may be closed already, as ", last, " is: go on from the highest that was ever used"));
}

absl::Status PutLoad(SqliteConnection& db, Statement& update, Statement& insert,
                     const LinkLoadRecord& load) {
  for (Statement* const put : {&update, &insert}) {
    absl::Status status = put->Run(load.average, load.peak, load.peaked, load.updated, load.link,
                                   load.from_b ? "b-to-a" : "a-to-b");
    if (absl::IsInternal(status)) {
      ASSIGN_OR_RETURN(const int64_t known,
                       db.Sql("SELECT count(*) FROM link WHERE id = ?").Number(load.link));
      if (known != 0) return status;
      return absl::NotFoundError(
          absl::StrCat("link ", load.link, " is in no inventory: take ids that LinkIds gave"));
    }
    RETURN_IF_ERROR(status);
    if (db.changes() > 0) break;
  }
  return absl::OkStatus();
}

absl::Status PutLoads(SqliteConnection& db, const std::vector<LinkLoadRecord>& loads) {
  Statement& update = db.Sql(
      "UPDATE link_load SET average = ?, peak = ?, peak_ns = ?, updated_ns = ? "
      "WHERE link_id = ? AND direction = ?");
  Statement& insert = db.Sql(
      "INSERT INTO link_load (average, peak, peak_ns, updated_ns, link_id, direction) "
      "VALUES (?, ?, ?, ?, ?, ?)");
  for (const LinkLoadRecord& load : loads) RETURN_IF_ERROR(PutLoad(db, update, insert, load));
  return absl::OkStatus();
}

absl::Status Close(SqliteConnection& db, const HistorySlot& slot) {
  RETURN_IF_ERROR(CheckOpen(db, slot.resolution, slot.slot));
  return db.Sql("INSERT INTO history_slot VALUES (?, ?, ?, ?)")
      .Run(static_cast<int>(slot.resolution), slot.slot, slot.start, slot.length);
}

// The highest slot that goes; 0: none does.
absl::StatusOr<int64_t> LastToDrop(SqliteConnection& db, HistoryResolution resolution) {
  const HistoryLimit limit = LimitOf(resolution);
  absl::Duration kept;
  int64_t slots = 0, last = 0;
  RETURN_IF_ERROR(
      db.Sql("SELECT slot, length_ns FROM history_slot WHERE resolution = ? ORDER BY slot DESC")
          .Bind(static_cast<int>(resolution))
          .ForEach([&](const Statement& row) {
            if (slots == limit.slots || kept >= limit.length) last = row.Integer(0);
            kept += absl::Nanoseconds(row.Integer(1));
            ++slots;
            return last == 0;
          }));
  return last;
}

// Returns how many went.
absl::StatusOr<int64_t> DropRows(SqliteConnection& db, HistoryResolution resolution, int64_t most) {
  const int place = static_cast<int>(resolution);
  ASSIGN_OR_RETURN(const int64_t last, LastToDrop(db, resolution));
  if (last > 0) {
    RETURN_IF_ERROR(
        db.Sql("DELETE FROM history_slot WHERE resolution = ? AND slot <= ?").Run(place, last));
  }
  ASSIGN_OR_RETURN(const int64_t first,
                   db.Sql("SELECT min(slot) FROM history_slot WHERE resolution = ?").Number(place));
  const char* const table = TableOf(resolution);
  RETURN_IF_ERROR(db.Sql(absl::StrCat("DELETE FROM ", table, " WHERE id IN (SELECT id FROM ", table,
                                      " WHERE id < ? ORDER BY id LIMIT ?)"))
                      .Run(first << kHistoryPortBits, most));
  return db.changes();
}

// What is known of each slot that was asked for, of the port of that number.
absl::StatusOr<std::vector<HistoryPoint>> ListPoints(SqliteConnection& db,
                                                     const HistoryQuery& query, int64_t port) {
  Statement& find =
      db.Sql(absl::StrCat("SELECT length_ms, sent_bytes, received_bytes, peak_sent_per_second, "
                          "peak_received_per_second, errors FROM ",
                          TableOf(query.resolution), " WHERE id = ?"));
  Statement& slots = db.Sql(
      "SELECT slot, start_ns, length_ns FROM history_slot WHERE resolution = ? ORDER BY slot");
  std::vector<HistoryPoint> points;
  slots.Bind(static_cast<int>(query.resolution));
  absl::Status read = slots.ForEach([&](const Statement& at) -> absl::Status {
    const HistorySlot slot{query.resolution, at.Integer(0), at.TimeAt(1),
                           absl::Nanoseconds(at.Integer(2))};
    if (slot.start < query.start || slot.start >= query.end) return absl::OkStatus();
    std::optional<HistoryRow> found;
    find.Bind((slot.slot << kHistoryPortBits) + port);
    RETURN_IF_ERROR(find.ForEach([&found](const Statement& row) {
      HistoryRow& moved = found.emplace();
      int64_t length_ms = 0;
      row.Read(length_ms, moved.sent_bytes, moved.received_bytes);
      moved.length = absl::Milliseconds(length_ms);
      moved.peak_sent_per_second = PeakAt(row, 3, moved.sent_bytes, length_ms);
      moved.peak_received_per_second = PeakAt(row, 4, moved.received_bytes, length_ms);
      moved.errors = static_cast<uint64_t>(row.Integer(5));
    }));
    const auto point = PointOf(slot, found ? &*found : nullptr);
    if (point) points.push_back(*point);
    return absl::OkStatus();
  });
  if (!read.ok()) return read;
  return points;
}

}  // namespace

absl::Status CounterWriter::ReadPorts() {
  ports_.clear();
  last_port_ = 0;
  RETURN_IF_ERROR(
      db_.Sql("SELECT id, node_guid, port FROM port_counter").ForEach([&](const Statement& row) {
        last_port_ = std::max(last_port_, row.Integer(0));
        ports_[{row.GuidAt(1), static_cast<uint8_t>(row.Integer(2))}] = row.Integer(0);
      }));
  has_ports_ = true;
  return absl::OkStatus();
}

absl::Status CounterWriter::Apply(const PutCounters& put) {
  if (!has_ports_) RETURN_IF_ERROR(ReadPorts());
  Statement& update = db_.Sql(R"sql(
      UPDATE port_counter SET sent_bytes = ?, received_bytes = ?, sent_packets = ?,
          received_packets = ?, sent_wait_ticks = ?, symbol_errors = ?, link_recoveries = ?,
          link_downed = ?, receive_errors = ?, remote_physical_errors = ?, relay_errors = ?,
          send_discards = ?, send_constraint_errors = ?, receive_constraint_errors = ?,
          integrity_errors = ?, buffer_overruns = ?, vl15_dropped = ?, is_extended = ?,
          sent_bytes_per_second = ?, received_bytes_per_second = ?, read_ns = ?
      WHERE id = ?)sql");
  for (const PortCounterRecord& port : put.counters) RETURN_IF_ERROR(PutPort(port, update));
  RETURN_IF_ERROR(PutLoads(db_, put.loads));
  for (const HistoryPart& part : put.history) RETURN_IF_ERROR(PutPart(part));
  for (const HistorySlot& slot : put.closed) RETURN_IF_ERROR(Close(db_, slot));
  return absl::OkStatus();
}

absl::Status CounterWriter::PutPort(const PortCounterRecord& port, Statement& update) {
  const auto [place, is_new] = ports_.try_emplace({port.node, port.port}, last_port_ + 1);
  if (!is_new) {
    BindCounts(update, port);
    return update.Run(place->second);
  }
  has_new_ports_ = true;
  if (++last_port_ > kMaxPorts) {
    return absl::ResourceExhaustedError(absl::StrCat(PortName(port.node, port.port), ": more than ",
                                                     kMaxPorts,
                                                     " ports were counted: begin a new database"));
  }
  Statement& insert = db_.Sql(R"sql(
      INSERT INTO port_counter VALUES
          (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))sql");
  insert.Bind(last_port_, port.node, port.port);
  BindCounts(insert, port);
  return insert.Run();
}

absl::Status CounterWriter::PutPart(const HistoryPart& part) {
  for (const HistoryRow& row : part.rows) {
    if (ports_.contains({row.node, row.port})) continue;
    return absl::NotFoundError(absl::StrCat(
        PortName(row.node, row.port), " was never counted: put its counters with its history"));
  }
  RETURN_IF_ERROR(CheckOpen(db_, part.resolution, part.slot));
  Statement& insert = db_.Sql(absl::StrCat("INSERT OR REPLACE INTO ", TableOf(part.resolution),
                                           " VALUES (?, ?, ?, ?, ?, ?, ?)"));
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

absl::Status Apply(SqliteConnection& db, const PruneHistory& prune) {
  int64_t most = prune.rows;
  for (const HistoryResolution resolution : kHistoryResolutions) {
    ASSIGN_OR_RETURN(const int64_t dropped, DropRows(db, resolution, most));
    most -= dropped;
  }
  return absl::OkStatus();
}

absl::StatusOr<StoredLoad> ReadLoad(SqliteConnection& db) {
  StoredLoad stored;
  ASSIGN_OR_RETURN(stored.loads,
                   db.Sql(R"sql(
      SELECT link_id, direction = 'b-to-a', average, peak, peak_ns, updated_ns
      FROM link_load ORDER BY link_id, direction)sql")
                       .List<LinkLoadRecord>([](const Statement& row, LinkLoadRecord& load) {
                         row.Read(load.link, load.from_b, load.average, load.peak, load.peaked,
                                  load.updated);
                       }));
  for (const HistoryResolution resolution : kHistoryResolutions) {
    ASSIGN_OR_RETURN(const int64_t closed, LastClosed(db, resolution));
    ASSIGN_OR_RETURN(const int64_t last,
                     db.Sql(absl::StrCat("SELECT max(id) FROM ", TableOf(resolution))).Number());
    stored.last_slot[static_cast<size_t>(resolution) - 1] =
        std::max(closed, last >> kHistoryPortBits);
  }
  return stored;
}

absl::StatusOr<std::vector<PortCounterRecord>> ReadCounters(SqliteConnection& db, Guid node) {
  return db
      .Sql(R"sql(
      SELECT node_guid, port, is_extended, sent_bytes_per_second, received_bytes_per_second, read_ns,
             sent_bytes, received_bytes, sent_packets, received_packets, sent_wait_ticks,
             symbol_errors, link_recoveries, link_downed, receive_errors, remote_physical_errors,
             relay_errors, send_discards, send_constraint_errors, receive_constraint_errors,
             integrity_errors, buffer_overruns, vl15_dropped
      FROM port_counter WHERE node_guid = ? ORDER BY port)sql")
      .Bind(node)
      .List<PortCounterRecord>([](const Statement& row, PortCounterRecord& port) {
        row.Read(port.node, port.port, port.is_extended, port.sent_bytes_per_second,
                 port.received_bytes_per_second, port.read);
        int column = 6;
        for (const PortCounterField& field : kPortCounterFields) {
          port.*field.count = static_cast<uint64_t>(row.Integer(column++));
        }
      });
}

absl::StatusOr<std::vector<HistoryPoint>> ReadHistory(SqliteConnection& db,
                                                      const HistoryQuery& query) {
  ASSIGN_OR_RETURN(const int64_t port,
                   db.Sql("SELECT id FROM port_counter WHERE node_guid = ? AND port = ?")
                       .Number(query.node, query.port));
  if (port == 0) return std::vector<HistoryPoint>();
  // Slots that go while they are read would count as slots in which nothing moved.
  RETURN_IF_ERROR(db.Sql("BEGIN").Run());
  absl::StatusOr<std::vector<HistoryPoint>> points = ListPoints(db, query, port);
  RETURN_IF_ERROR(db.Sql("COMMIT").Run());
  RETURN_IF_ERROR(points.status());
  return MergePoints(*std::move(points));
}

}  // namespace coppice
