// Splits what a sweep has to write into mutations that each take milliseconds, and writes them.
#ifndef COPPICE_DAEMON_MANAGER_LOAD_STORE_BATCHES_H_
#define COPPICE_DAEMON_MANAGER_LOAD_STORE_BATCHES_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "db/store.h"

namespace coppice {

class StoreBatches {
 public:
  void Add(PortCounterRecord counters) { Room().counters.push_back(std::move(counters)); }
  void Add(const LinkLoadRecord& load) { Room().loads.push_back(load); }
  void Add(HistoryResolution resolution, int64_t slot, const HistoryRow& row);
  // Its rows have been added.
  void Close(const HistorySlot& slot) { closed_.push_back(slot); }

  // Once. Each mutation when the one before is durable, and beside it one that prunes about twice
  // as many rows. Stops at the first of either that fails; slots are closed by the last mutation.
  absl::Status Write(Store& store);
  // All of it is durable, whatever became of the pruning.
  bool is_stored() const { return is_stored_; }
  bool closes() const { return !closed_.empty(); }

 private:
  // Rows of one mutation: about 10 ms.
  static constexpr size_t kRows = 4096;
  // The mutation that the next row goes to.
  PutCounters& Room();

  std::vector<PutCounters> batches_;
  size_t rows_ = kRows;  // in the last of them
  std::vector<HistorySlot> closed_;
  bool is_stored_ = false;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LOAD_STORE_BATCHES_H_
