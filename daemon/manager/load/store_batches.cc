#include "daemon/manager/load/store_batches.h"

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

}  // namespace coppice
