// What is stored of counters, load and their history. Part of the interface in store.h, which
// includes this. Plain structs.
//
// History is kept in three resolutions. Each has slots, numbered from 1 in the order in which they
// were measured, and in each slot a row for every port that is worth one:
//
//     slot there, row there       what the port moved in the row's length; length 0: not measured
//     slot there, no row          nothing moved
//     no slot                     nothing is known: the daemon was not there
//
// The wall clock only labels slots: a clock that steps loses and doubles nothing, and two slots may
// have the same label, which readers add up.
#ifndef COPPICE_DB_LOAD_RECORDS_H_
#define COPPICE_DB_LOAD_RECORDS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/strong_id.h"

namespace coppice {

// What a port has counted, and when; rates are those between that reading and the one before.
struct PortCounterRecord {
  Guid node;
  uint8_t port = 0;
  uint64_t sent_bytes = 0, received_bytes = 0;
  uint64_t sent_packets = 0, received_packets = 0;
  uint64_t sent_wait_ticks = 0;
  uint64_t symbol_errors = 0, link_recoveries = 0, link_downed = 0;
  uint64_t receive_errors = 0, remote_physical_errors = 0, relay_errors = 0;
  uint64_t send_discards = 0, send_constraint_errors = 0, receive_constraint_errors = 0;
  uint64_t integrity_errors = 0, buffer_overruns = 0, vl15_dropped = 0;
  bool is_extended = false;  // 64-bit counts
  double sent_bytes_per_second = 0, received_bytes_per_second = 0;
  absl::Time read;
  friend bool operator==(const PortCounterRecord&, const PortCounterRecord&) = default;
};

// Of one direction of a link.
struct LinkLoadRecord {
  int64_t link = 0;     // id in the store
  bool from_b = false;  // b-to-a, with a and b as LinkRecord orders them
  double average = 0;   // share of the capacity, moving average
  double peak = 0;      // highest between two readings
  absl::Time peaked, updated;
  friend bool operator==(const LinkLoadRecord&, const LinkLoadRecord&) = default;
};

enum class HistoryResolution : uint8_t { kReading = 1, kMinute = 2, kHour = 3 };
inline constexpr std::array kHistoryResolutions = {
    HistoryResolution::kReading, HistoryResolution::kMinute, HistoryResolution::kHour};

// What one port moved in one slot.
struct HistoryRow {
  Guid node;
  uint8_t port = 0;
  absl::Duration length;  // that was measured, in whole milliseconds; 0: nothing is known
  uint64_t sent_bytes = 0, received_bytes = 0;
  uint64_t peak_sent_per_second = 0, peak_received_per_second = 0;  // bytes, between two readings
  uint64_t errors = 0;
  friend bool operator==(const HistoryRow&, const HistoryRow&) = default;
};

// Rows of a slot that is not closed yet.
struct HistoryPart {
  HistoryResolution resolution = HistoryResolution::kReading;
  int64_t slot = 0;
  std::vector<HistoryRow> rows;
  friend bool operator==(const HistoryPart&, const HistoryPart&) = default;
};

// A slot whose rows are all there.
struct HistorySlot {
  HistoryResolution resolution = HistoryResolution::kReading;
  int64_t slot = 0;       // above all earlier ones of the resolution
  absl::Time start;       // by the wall clock, as it was
  absl::Duration length;  // of what was measured, by the monotonic clock
  friend bool operator==(const HistorySlot&, const HistorySlot&) = default;
};

// How much is kept: the newest slots that make up `length`, and not more than `slots` of them.
struct HistoryLimit {
  absl::Duration length;
  int64_t slots = 0;
};
inline constexpr HistoryLimit LimitOf(HistoryResolution resolution) {
  switch (resolution) {
    case HistoryResolution::kReading:
      return {absl::Hours(1), 3'600};
    case HistoryResolution::kMinute:
      return {absl::Hours(24), 1'500};
    case HistoryResolution::kHour:
      break;
  }
  return {absl::Hours(24 * 31), 760};
}

struct HistoryPoint {
  absl::Time start;
  absl::Duration length;  // that was measured
  uint64_t sent_bytes = 0, received_bytes = 0;
  uint64_t peak_sent_per_second = 0, peak_received_per_second = 0;
  uint64_t errors = 0;
  friend bool operator==(const HistoryPoint&, const HistoryPoint&) = default;
};

struct HistoryQuery {
  Guid node;
  uint8_t port = 0;
  absl::Time start = absl::InfinitePast(), end = absl::InfiniteFuture();
  HistoryResolution resolution = HistoryResolution::kReading;
};

// What a daemon that starts takes up of the last one's measurements.
struct StoredLoad {
  std::vector<LinkLoadRecord> loads;      // by link, a-to-b first
  std::array<int64_t, 3> last_slot = {};  // [resolution - 1] highest that was ever used
  friend bool operator==(const StoredLoad&, const StoredLoad&) = default;
};

// How a store's writer does, since it was opened.
struct StoreStatistics {
  // Bounds of the histogram's buckets: a commit took at most so long; the last bucket has no bound.
  static constexpr std::array<absl::Duration, 12> kBounds = {
      absl::Microseconds(100), absl::Microseconds(250), absl::Microseconds(500),
      absl::Milliseconds(1),   absl::Milliseconds(2),   absl::Milliseconds(5),
      absl::Milliseconds(10),  absl::Milliseconds(25),  absl::Milliseconds(50),
      absl::Milliseconds(100), absl::Milliseconds(250), absl::Seconds(1)};
  uint64_t queued = 0;     // mutations that are submitted and not answered
  uint64_t mutations = 0;  // that were answered
  uint64_t commits = 0, failed_commits = 0;
  uint64_t refused = 0;  // mutations that the storage, not their content, kept from being written
  std::string fault;     // of the storage, as the next write would meet it; empty: none is known
  std::array<uint64_t, kBounds.size() + 1> commit_times = {};  // [bucket], also of failed ones
  absl::Duration commit_time;                                  // sum of them
  uint64_t database_bytes = 0;                                 // with the write-ahead log; 0: none
};

}  // namespace coppice

#endif  // COPPICE_DB_LOAD_RECORDS_H_
