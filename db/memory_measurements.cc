#include "db/memory_measurements.h"

#include <algorithm>
#include <set>

#include "absl/time/time.h"
#include "daemon/base/status_macros.h"
#include "db/history_points.h"
#include "db/refusals.h"

namespace coppice {

absl::Status MemoryMeasurements::Check(const PutCounters& put) const {
  std::set<PortKey> added;
  for (const PortCounterRecord& port : put.counters) added.insert({port.node, port.port});
  std::array<int64_t, 3> last{};
  for (const HistoryResolution resolution : kHistoryResolutions) {
    last[static_cast<size_t>(resolution) - 1] = Of(resolution).last_closed();
  }
  for (const HistoryPart& part : put.history) {
    for (const HistoryRow& row : part.rows) {
      const PortKey key{row.node, row.port};
      if (!ports_.contains(key) && !added.contains(key)) return NoCounters(row.node, row.port);
    }
    const int64_t closed = last[static_cast<size_t>(part.resolution) - 1];
    if (part.slot <= closed) return SlotClosed(part.resolution, part.slot, closed);
  }
  for (const HistorySlot& slot : put.closed) {
    int64_t& closed = last[static_cast<size_t>(slot.resolution) - 1];
    if (slot.slot <= closed) return SlotClosed(slot.resolution, slot.slot, closed);
    closed = slot.slot;
  }
  return absl::OkStatus();
}

absl::Status MemoryMeasurements::Put(const PutCounters& put) {
  RETURN_IF_ERROR(Check(put));
  for (const PortCounterRecord& port : put.counters) ports_[{port.node, port.port}] = port;
  for (const LinkLoadRecord& load : put.loads) loads_[{load.link, load.from_b}] = load;
  for (const HistoryPart& part : put.history) {
    for (const HistoryRow& row : part.rows) {
      HistoryRow& kept = Of(part.resolution).rows[{part.slot, {row.node, row.port}}];
      kept = row;
      kept.length = absl::Trunc(row.length, absl::Milliseconds(1));
    }
  }
  for (const HistorySlot& slot : put.closed) Of(slot.resolution).slots[slot.slot] = slot;
  return absl::OkStatus();
}

void MemoryMeasurements::Prune(const PruneHistory& prune) {
  uint32_t left = prune.rows;
  for (const HistoryResolution resolution : kHistoryResolutions) {
    Past& past = Of(resolution);
    const HistoryLimit limit = LimitOf(resolution);
    absl::Duration kept;
    int64_t slots = 0;
    auto first = past.slots.end();
    while (first != past.slots.begin() && slots < limit.slots && kept < limit.length) {
      --first;
      kept += first->second.length;
      ++slots;
    }
    past.slots.erase(past.slots.begin(), first);
    if (past.slots.empty()) continue;
    for (; left > 0 && !past.rows.empty(); --left) {
      if (past.rows.begin()->first.first >= past.slots.begin()->first) break;
      past.rows.erase(past.rows.begin());
    }
  }
}

StoredLoad MemoryMeasurements::Load() const {
  StoredLoad stored;
  for (const auto& [key, load] : loads_) stored.loads.push_back(load);
  for (size_t i = 0; i < histories_.size(); ++i) {
    const Past& past = histories_[i];
    const int64_t begun = past.rows.empty() ? 0 : past.rows.rbegin()->first.first;
    stored.last_slot[i] = std::max(past.last_closed(), begun);
  }
  return stored;
}

std::vector<PortCounterRecord> MemoryMeasurements::Counters(Guid node) const {
  std::vector<PortCounterRecord> ports;
  for (auto port = ports_.lower_bound({node, 0}); port != ports_.end(); ++port) {
    if (port->first.first != node) break;
    ports.push_back(port->second);
  }
  return ports;
}

std::vector<HistoryPoint> MemoryMeasurements::History(const HistoryQuery& query) const {
  std::vector<HistoryPoint> points;
  if (!ports_.contains({query.node, query.port})) return points;
  const Past& past = Of(query.resolution);
  for (const auto& [number, slot] : past.slots) {
    if (!IsAsked(query, slot)) continue;
    const auto row = past.rows.find({number, {query.node, query.port}});
    const auto point = PointOf(slot, row == past.rows.end() ? nullptr : &row->second);
    if (point) points.push_back(*point);
  }
  return MergePoints(std::move(points));
}

}  // namespace coppice
