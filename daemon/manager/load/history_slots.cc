#include "daemon/manager/load/history_slots.h"

#include <future>
#include <utility>

#include "daemon/base/status_macros.h"

namespace coppice {
PutCounters& StoreBatches::Room() {
  if (rows_ == kRows) {
    batches_.emplace_back();
    rows_ = 0;
  }
  ++rows_;
  return batches_.back();
}

void StoreBatches::Add(HistoryResolution resolution, int64_t slot, const HistoryRow& row) {
  std::vector<HistoryPart>& parts = Room().history;
  if (parts.empty() || parts.back().resolution != resolution || parts.back().slot != slot) {
    parts.push_back({resolution, slot, {}});
  }
  parts.back().rows.push_back(row);
}

absl::Status StoreBatches::Write(Store& store) {
  if (closes()) {
    if (batches_.empty()) batches_.emplace_back();
    batches_.back().closed = closed_;
  }
  for (PutCounters& batch : batches_) {
    // Side by side: mostly they share a transaction, as they wait together; neither needs the
    // other.
    std::promise<absl::Status> written, pruned;
    store.Submit(std::move(batch),
                 [&written](absl::Status status) { written.set_value(std::move(status)); });
    store.Submit(PruneHistory{2 * kRows},
                 [&pruned](absl::Status status) { pruned.set_value(std::move(status)); });
    const absl::Status first = written.get_future().get();
    const absl::Status second = pruned.get_future().get();
    RETURN_IF_ERROR(first);
    is_stored_ = &batch == &batches_.back();
    RETURN_IF_ERROR(second);
  }
  batches_.clear();
  return absl::OkStatus();
}

void HistorySlots::Close(ChannelStates& ports, OpenSlot& open) {
  if (open.length <= absl::ZeroDuration()) return;
  ClosedSlot closed{{open.resolution, 0, open.start, open.length}, {}};
  ports.ForEachPort([&](Guid node, DirectionState& state) {
    const HistorySums sums = std::exchange(state.*open.sums, HistorySums());
    if (!sums.NeedsRow(open.length)) return;
    closed.rows.push_back(sums.Row(node, state.reading.port.value()));
  });
  if (unwritten_.size() == kMaxUnwritten) unwritten_.erase(unwritten_.begin());
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
