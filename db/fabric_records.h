// What is stored of the fabric: the inventory, counters, load and their history, and measured
// distances between hosts. Part of the interface in store.h, which includes this. Plain structs;
// how many distances are kept, and which go, is the manager's.
//
// History is kept in slots of three resolutions (README.md): a slot has a row for every port that
// is worth one. A row of length 0: not measured; no row: nothing moved; no slot: nothing is known.
#ifndef COPPICE_DB_FABRIC_RECORDS_H_
#define COPPICE_DB_FABRIC_RECORDS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/base/port_counters.h"
#include "daemon/base/strong_id.h"

namespace coppice {

// --- Inventory ---

enum class NodeKind : uint8_t { kSwitch = 1, kChannelAdapter = 2, kRouter = 3 };

struct NodeRecord {
  Guid guid;
  NodeKind kind = NodeKind::kSwitch;
  std::string description;
  std::string host;  // of an adapter; empty for switches
  uint32_t vendor_id = 0, device_id = 0;
  uint8_t port_count = 0;
  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

struct PortRecord {
  Guid node;
  uint8_t port = 0;  // 0: a switch's management port, the one with its LID
  Guid port_guid;
  uint16_t lid = 0;
  friend bool operator==(const PortRecord&, const PortRecord&) = default;
};

struct LinkRecord {
  Guid node_a;
  uint8_t port_a = 0;
  Guid node_b;
  uint8_t port_b = 0;  // (node_a, port_a) < (node_b, port_b)
  std::string rate;    // "4xQDR"
  double capacity_gbps = 0;
  friend bool operator==(const LinkRecord&, const LinkRecord&) = default;
};

// Everything that the newest snapshot holds: first_seen is set on new rows, last_seen on all, rows
// that are not named keep their last_seen (what went away stays known). Ports and links may name
// nodes of this or an earlier inventory only. A link's ends may come in either order.
struct PutInventory {
  uint64_t fabric_version = 0;
  absl::Time time;
  std::vector<NodeRecord> nodes;
  std::vector<PortRecord> ports;
  std::vector<LinkRecord> links;
};

// --- Counters, load and history ---

// What a port has counted, and when; rates are those between that reading and the one before.
struct PortCounterRecord : PortCounters {
  Guid node;
  uint8_t port = 0;
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
  constexpr HistoryLimit kLimits[] = {
      {absl::Hours(1), 3'600}, {absl::Hours(24), 1'500}, {absl::Hours(24 * 31), 760}};
  return kLimits[static_cast<size_t>(resolution) - 1];
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

// A part of what a counter sweep found: rows replace those of the same port or the same direction.
// A sweep of a large fabric is split into several, so that none holds up other mutations for long;
// slots are closed by the last. Cheapest with rows in an order that is the same each time.
// NOT_FOUND: a load of a link that no inventory ever held, history of a port without counters (this
// mutation's included). INVALID_ARGUMENT: a slot that is not in 1..2^39-1, a load, a rate or a
// length that is negative or not a number. ALREADY_EXISTS: a slot not above the highest that is
// closed. Checked in this order.
struct PutCounters {
  std::vector<PortCounterRecord> counters;
  std::vector<LinkLoadRecord> loads;
  std::vector<HistoryPart> history;
  std::vector<HistorySlot> closed;
};

// Drops the oldest history beyond LimitOf, at most `rows` rows: call it again and again.
struct PruneHistory {
  uint32_t rows = 2048;
};

// --- Distances ---

// What a distance was measured over. Figures over two cannot be compared.
enum class Transport { kTcp, kVerbs };

// Of one pair of hosts, by their names in the fabric; the one that measured comes first.
struct DistanceRecord {
  std::string host_a, host_b;    // host_a < host_b, as bytes
  double latency_us = 0;         // half a round trip: mean of the samples kept
  double latency_spread_us = 0;  // their standard deviation
  double bandwidth_gbps = 0;     // of one direction
  double bandwidth_spread_gbps = 0;
  uint32_t samples = 0;  // of latency, kept
  absl::Time measured;
  Transport transport = Transport::kTcp;
  friend bool operator==(const DistanceRecord&, const DistanceRecord&) = default;
};

// Drops pairs, whether or not they are there, then puts others, each in place of the one of the
// same hosts. INVALID_ARGUMENT: hosts without a name or not in order; a latency or bandwidth that
// is not above 0, a spread below 0, or either infinite; no samples.
struct PutDistances {
  std::vector<DistanceRecord> put;
  std::vector<std::pair<std::string, std::string>> drop;  // host_a, host_b
};

}  // namespace coppice

#endif  // COPPICE_DB_FABRIC_RECORDS_H_
