#include "db/history_points.h"

#include <algorithm>

namespace coppice {

bool IsAsked(const HistoryQuery& query, const HistorySlot& slot) {
  return slot.start >= query.start && slot.start < query.end;
}

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

}  // namespace coppice
