// The history of what ports moved, as it is made: every reading, the minute and the hour that are
// under way, and those that are over and wait for the store.
//
//   sweep --Take--> a slot of readings ----------------------------> StoreBatches
//              \--> minute, hour under way --over--> closed --WriteClosed--^
//                                                      ^ until Stored
//
// Slots are numbered; the wall clock only labels them (db/README.md). Not thread-safe: the load
// keeper's lock guards it.
#ifndef COPPICE_DAEMON_MANAGER_LOAD_HISTORY_SLOTS_H_
#define COPPICE_DAEMON_MANAGER_LOAD_HISTORY_SLOTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/manager/load/channel_states.h"
#include "db/store.h"

namespace coppice {

// Splits what a sweep has to write into mutations that each take milliseconds, and writes them.

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

class HistorySlots {
 public:
  // Numbers go on from what the store has closed.
  void Restore(const std::array<int64_t, 3>& last_slot) { last_slot_ = last_slot; }
  // The sweep that `ports` holds, `length` after the one before.
  void Take(ChannelStates& ports, absl::Duration length, absl::Time wall, StoreBatches& batches);
  // Ends what is under way, before the daemon does.
  void CloseAll(ChannelStates& ports, StoreBatches& batches);
  // What was closed and added to batches is on the disk, or will never be.
  void Stored() { unwritten_.clear(); }

 private:
  // A minute or an hour that is under way.
  struct OpenSlot {
    HistoryResolution resolution;
    absl::Duration step;
    HistorySums DirectionState::*sums;
    absl::Time start;
    absl::Duration length;  // measured; 0: nothing yet
  };
  // One that is over.
  struct ClosedSlot {
    HistorySlot slot;
    std::vector<HistoryRow> rows;
  };
  // That wait for a store that can be written again.
  static constexpr size_t kMaxUnwritten = 4;

  int64_t NextSlot(HistoryResolution resolution) {
    return ++last_slot_[static_cast<size_t>(resolution) - 1];
  }
  void Close(ChannelStates& ports, OpenSlot& open);
  void WriteClosed(StoreBatches& batches);

  std::array<int64_t, 3> last_slot_ = {};
  OpenSlot minute_{HistoryResolution::kMinute, absl::Minutes(1), &DirectionState::minute, {}, {}};
  OpenSlot hour_{HistoryResolution::kHour, absl::Hours(1), &DirectionState::hour, {}, {}};
  std::vector<ClosedSlot> unwritten_;  // at most kMaxUnwritten, oldest first
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LOAD_HISTORY_SLOTS_H_
