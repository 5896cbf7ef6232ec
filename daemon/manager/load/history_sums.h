// What one port moved in the minute or the hour that is under way, until the slot is closed.
#ifndef COPPICE_DAEMON_MANAGER_LOAD_HISTORY_SUMS_H_
#define COPPICE_DAEMON_MANAGER_LOAD_HISTORY_SUMS_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "daemon/manager/load/port_rates.h"
#include "db/store.h"

namespace coppice {

struct HistorySums {
  absl::Duration length;  // of which the data are known
  uint64_t sent_bytes = 0, received_bytes = 0;
  uint64_t peak_sent = 0, peak_received = 0;  // bytes a second
  uint64_t errors = 0;

  // Counts only what is known of both directions.
  void Add(const PortInterval& interval) {
    errors += interval.all_errors();
    if (interval.sent_bytes.certainty == Certainty::kUnknown ||
        interval.received_bytes.certainty == Certainty::kUnknown) {
      return;
    }
    length += interval.length;
    sent_bytes += interval.sent_bytes.count;
    received_bytes += interval.received_bytes.count;
    peak_sent = std::max(peak_sent, static_cast<uint64_t>(interval.sent_rate() + 0.5));
    peak_received = std::max(peak_received, static_cast<uint64_t>(interval.received_rate() + 0.5));
  }

  // Without a row, readers take it that nothing moved in the whole slot.
  bool NeedsRow(absl::Duration slot_length) const {
    return sent_bytes > 0 || received_bytes > 0 || errors > 0 || length < 0.9 * slot_length;
  }
  HistoryRow Row(Guid node, uint8_t port) const {
    return {node, port, length, sent_bytes, received_bytes, peak_sent, peak_received, errors};
  }
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LOAD_HISTORY_SUMS_H_
