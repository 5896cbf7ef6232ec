#include "daemon/manager/load/history_slots.h"

#include <utility>

namespace coppice {

void HistorySlots::Close(ChannelStates& ports, OpenSlot& open) {
  if (open.length <= absl::ZeroDuration()) return;
  ClosedSlot closed{{open.resolution, 0, open.start, open.length}, {}};
  ports.ForEachPort([&](Guid node, DirectionState& state) {
    const HistorySums sums = std::exchange(state.*open.sums, HistorySums());
    if (!sums.NeedsRow(open.length)) return;
    closed.rows.push_back(sums.Row(node, state.reading.port.value()));
  });
  if (unwritten_.size() == kMostUnwritten) unwritten_.erase(unwritten_.begin());
  unwritten_.push_back(std::move(closed));
  open.length = absl::ZeroDuration();
}

// Each time under another number: the store takes none twice.
void HistorySlots::WriteClosed(StoreBatches& batches) {
  for (ClosedSlot& closed : unwritten_) {
    closed.slot.slot = NextSlot(closed.slot.resolution);
    for (const HistoryRow& row : closed.rows) {
      batches.Add(closed.slot.resolution, closed.slot.slot, row);
    }
    batches.Close(closed.slot);
  }
}

void HistorySlots::Take(ChannelStates& ports, absl::Duration length, absl::Time wall,
                        StoreBatches& batches) {
  for (OpenSlot* open : {&minute_, &hour_}) {
    const int64_t step = absl::ToInt64Seconds(open->step);
    const int64_t middle = absl::ToUnixSeconds(wall - length / 2);
    const absl::Time start = absl::FromUnixSeconds(middle - middle % step);
    if (start != open->start) Close(ports, *open);
    open->start = start;
    open->length += length;
  }
  WriteClosed(batches);
  const int64_t slot = NextSlot(HistoryResolution::kReading);
  ports.ForEachPort([&](Guid node, DirectionState& state) {
    HistorySums sums;
    if (state.sweep == ports.sweep()) {
      for (HistorySums* each : {&sums, &state.minute, &state.hour}) each->Add(state.interval);
    }
    if (!sums.NeedsRow(length)) return;
    batches.Add(HistoryResolution::kReading, slot, sums.Row(node, state.reading.port.value()));
  });
  batches.Close({HistoryResolution::kReading, slot, wall - length, length});
}

void HistorySlots::CloseAll(ChannelStates& ports, StoreBatches& batches) {
  Close(ports, minute_);
  Close(ports, hour_);
  WriteClosed(batches);
}

}  // namespace coppice
