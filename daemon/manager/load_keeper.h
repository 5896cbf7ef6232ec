// What the counters say: takes each counter sweep, keeps rates, moving averages and peaks of every
// channel, publishes them as the load that plans see, tells what is wrong, and hands counters, load
// and history to the store.
//
//   CounterSweep --> ChannelStates --> average per channel --> LinkLoad --> Tables: the view
//                     |    |    |                               (same version) and PromisedLoad
//                     |    |    +-- HistorySlots --+
//                     |    +------- counters, load +--> StoreBatches --> Store
//                     +-- PortWatch --> events, returned to the caller
//
// Invariants: load never is negative, above 1 or not a number; the wall clock only labels; what a
// link carried survives a sweep that saw it again, and nothing else. Knows no MADs and no SQL.
#ifndef COPPICE_DAEMON_MANAGER_LOAD_KEEPER_H_
#define COPPICE_DAEMON_MANAGER_LOAD_KEEPER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/manager/channel_states.h"
#include "daemon/manager/fabric_view.h"
#include "daemon/manager/tables.h"
#include "db/store.h"

namespace coppice {

// --- What of the readings is told ---

// When errors rise on a link: once when they begin, once an hour while they go on, once when they
// are over.
//
//     quiet --rising: told--> rising --an hour, still rising: told--> rising
//       ^                       |
//       +----5 min none: told---+

inline constexpr absl::Duration kTellErrorsEvery = absl::Hours(1);
inline constexpr absl::Duration kErrorsAreOver = absl::Minutes(5);

// Whether the errors of one reading are worth telling: a link that went down or recovered, or
// `threshold` symbol errors, receive errors and discards per minute.
bool IsRising(const PortInterval& interval, double threshold);

// Of one link that has had rising errors.
class ErrorWatch {
 public:
  struct Told {
    bool is_over = false;
    std::array<uint64_t, kErrorCounts> errors = {};  // [ErrorCount] since the last time
    absl::Duration since;                            // that was so long ago
  };

  // One reading of one end of it, which ends at `now`.
  std::optional<Told> Take(const PortInterval& interval, bool is_rising, absl::Duration now);
  bool is_quiet() const { return !rising_; }

 private:
  bool rising_ = false;
  absl::Duration told_, last_rise_;  // monotonic
  std::array<uint64_t, kErrorCounts> errors_ = {};
};

// "symbol_errors +12, link_downed +1"
std::string ErrorsInWords(const std::array<uint64_t, kErrorCounts>& errors);

// Errors that rise on a link, and counts of data that stand at their end, as events.
class PortWatch {
 public:
  // Links of `old` are to be those of `now`, as far as they are there.
  void Adopt(const Fabric& old, const Fabric& now);
  // The sweep that `ports` holds. `error_threshold` as LoadOptions has it.
  void Take(ChannelStates& ports, double error_threshold, absl::Time wall,
            std::vector<EventRecord>& events);

 private:
  void WatchErrors(ChannelStates& ports, double error_threshold, absl::Time wall,
                   std::vector<EventRecord>& events);
  void WatchStops(ChannelStates& ports, absl::Time wall, std::vector<EventRecord>& events);

  absl::flat_hash_map<uint32_t, ErrorWatch> watches_;  // by link: those with rising errors
};

// Switches whose counters are not read, as events: `switch.counters` once when a switch refuses, or
// has not answered for a while, and once when all of its counters are read again. Not thread-safe.
class UnreadWatch {
 public:
  // Counter sweeps in a row in which a switch is silent about some port before that is told. What
  // it refuses, or says wrongly, is told at once.
  static constexpr int kSilentSweeps = 3;
  // More of them at once are one event with object "fabric", their number and the first few.
  static constexpr size_t kMaxTold = 16;

  // A sweep that asked nobody, because LIDs are in doubt, says nothing.
  void Take(const CounterSweep& sweep, absl::Time wall, std::vector<EventRecord>& events);

 private:
  struct Unread {
    int sweeps = 0;  // in a row
    bool is_told = false;
  };

  absl::btree_map<Guid, Unread> switches_;
};

// --- What the store gets ---
//
//   sweep --Take--> a slot of readings ----------------------------> StoreBatches
//              \--> minute, hour under way --over--> closed --WriteClosed--^
//                                                      ^ until Stored
//
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

// History as it is made: every reading, the minute and the hour that are under way, and those that
// are over and wait for the store. Slots are numbered; the wall clock only labels them
// (db/README.md).
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

class LoadKeeper {
 public:
  // Both outlive this.
  LoadKeeper(Store* store, Tables* tables, const LoadOptions& options)
      : store_(store), tables_(tables), options_(options) {}

  // From the next readings on. Thread-safe.
  void Configure(const LoadOptions& options);

  // Takes up what the last daemon stored: averages that are not older than kLoadLife at `wall`
  // count until the first readings of one's own. Errors: as Store::Load.
  absl::Status Restore(absl::Time wall);

  // The load of a fabric that is not published yet: of each link that the last one had, too, what
  // is known of it; nothing for others. `link_ids` is [link]. Thread-safe.
  std::shared_ptr<const LinkLoad> LoadOf(const std::shared_ptr<const Fabric>& fabric,
                                         absl::Span<const int64_t> link_ids);

  // To be called after a view with such a load has been published: if what was measured was
  // forgotten in between, takes the load out of the view again. Thread-safe.
  void ClearIfSilent();

  // Takes the readings of the ports of `view`, which is or was published: its fabric is what was
  // swept. Publishes the load at once, under the same fabric version, unless a view of another
  // version has been published meanwhile; then writes to the store and returns when all of it is
  // durable, in steps that hold up other mutations for milliseconds. Appends to `events` what is
  // to be told (kinds `link.errors` and `port.counters`), also after an error. Errors, after which
  // everything is written again by the next call: as Store::Submit.
  absl::Status TakeReadings(const CounterSweep& sweep,
                            const std::shared_ptr<const FabricView>& view, absl::Time wall,
                            std::vector<EventRecord>& events);

  // To be called now and then, by one clock: if no readings came for kLoadLife, or three times the
  // last interval if that is longer, nothing measured counts any more, and plans see no load but
  // what is promised. Thread-safe.
  void ForgetIfSilent(absl::Duration monotonic);

  // Writes the minute and the hour that are under way, so that a restart continues them.
  absl::Status Flush();

  // What is known of a link of the fabric that was last read; before the first readings, of the one
  // that LoadOf was last asked about: what was restored. Thread-safe.
  LinkMeasure Measure(const Fabric& fabric, LinkIndex link) const;
  // Of the switch, by port; empty before its first reading. Thread-safe.
  std::vector<PortCounterRecord> Counters(Guid guid) const;

 private:
  // Where the published fabric is this one.
  void Publish(const Fabric* fabric, std::shared_ptr<const LinkLoad> load);
  void PublishNone();
  std::shared_ptr<const LinkLoad> PresentLoad() const;
  void WriteCounters(StoreBatches& batches);
  void WriteLoads(absl::Time wall, StoreBatches& batches);
  absl::Status Write(StoreBatches& batches);

  Store* const store_;
  Tables* const tables_;

  mutable std::mutex mu_;
  // All guarded by mu_, which is taken before the tables' lock.
  LoadOptions options_;
  ChannelStates ports_;
  HistorySlots history_;
  PortWatch watch_;
  absl::Duration length_;     // between the last two sweeps
  uint64_t noted_sweep_ = 0;  // the sweep when ForgetIfSilent looked last
  absl::Duration noted_;      // since when it is that, by the clock of ForgetIfSilent
  bool has_noted_ = false;
  bool is_silent_ = false;  // nothing measured counts
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LOAD_KEEPER_H_
