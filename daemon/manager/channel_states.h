// Every channel of the fabric whose counters are read: adopts one fabric after the other, takes the
// readings of each sweep, and tells the load that follows.
//
//   stored loads --Restore--> until the first fabric, and of links that are away: peaks
//                                      |  ^
//   view --Adopt--> states [channel] <-+--+     carried over by the two ends of each link, node
//   GUID readings --Take, UpdateLoads--> states      and port: what has another end is another link
#ifndef COPPICE_DAEMON_MANAGER_CHANNEL_STATES_H_
#define COPPICE_DAEMON_MANAGER_CHANNEL_STATES_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/manager/fabric_view.h"
#include "db/store.h"

namespace coppice {

// --- From two readings of a port's counters to what it moved in between ---
//
//   before  after   64-bit count that goes around        32-bit count that stops at its end
//   ------  -----   ---------------------------------    ----------------------------------
//      a  <=  b     b - a                                b - a; at least that if b is the end
//      a  >   b     b + 2^64 - a if the link can carry   a reset: b was counted since, at least
//                   that in the time; else a reset
//   a little above  unknown, unless it went around        unknown
//     b > 0
//
// A device that counts a little down has not begun anew. A reset that leaves b above a cannot be
// told: b - a then is less than what moved, never more. If other data counters of the port fell,
// all of them count as at least. No rate is beyond the capacity: what would be is cut there (IBA
// vol. 1, 16.1.3.5: counters of PortCounters stop at their greatest value, those of
// PortCountersExtended go around).

// Readings that are closer give no rate: the answer's way back is a part of their distance.
inline constexpr absl::Duration kMinInterval = absl::Milliseconds(10);
// A measured rate may be so much above the capacity before it is noted: readings come with jitter.
inline constexpr double kCapacityTolerance = 0.05;

// How much a count has grown.
struct Growth {
  uint64_t count = 0;  // 0 if unknown
  Certainty certainty = Certainty::kUnknown;
  bool is_reset = false;
  bool is_stopped = false;  // stood at its end all the time: unknown, which is not nothing
  friend bool operator==(const Growth&, const Growth&) = default;
};

// Fell by at most a sixteenth, or by one, and not to 0: no reset.
bool SlippedBack(uint64_t before, uint64_t after);

// Of a 64-bit count that goes around, which cannot grow by more than `most`.
Growth GrowthOfWrapping(uint64_t before, uint64_t after, uint64_t most);
// Of a count that stops at `greatest`.
Growth GrowthOfStopping(uint64_t before, uint64_t after, uint64_t greatest);

// Error counters, in the order in which people read them.
enum class ErrorCount : uint8_t {
  kSymbolErrors,
  kLinkRecoveries,
  kLinkDowned,
  kReceiveErrors,
  kRemotePhysicalErrors,
  kRelayErrors,
  kSendDiscards,
  kSendConstraintErrors,
  kReceiveConstraintErrors,
  kIntegrityErrors,
  kBufferOverruns,
  kVl15Dropped,
};
inline constexpr size_t kErrorCounts = 12;
absl::string_view NameOf(ErrorCount count);  // "symbol_errors"

// What one port moved between two readings.
struct PortInterval {
  absl::Duration length;  // 0: the readings are no pair, and all else is empty
  Growth sent_bytes, received_bytes;
  std::array<uint64_t, kErrorCounts> errors = {};  // [ErrorCount] new ones, at least
  bool is_cut = false;  // a rate was beyond the capacity, and is the capacity

  uint64_t error(ErrorCount count) const { return errors[static_cast<size_t>(count)]; }
  uint64_t all_errors() const;
  // Bytes a second; 0 without a length.
  double sent_rate() const { return Rate(sent_bytes); }
  double received_rate() const { return Rate(received_bytes); }

 private:
  double Rate(const Growth& growth) const {
    const double seconds = absl::ToDoubleSeconds(length);
    return seconds > 0 ? static_cast<double>(growth.count) / seconds : 0;
  }
};

// `capacity` of the link in bytes a second, 0: unknown. Readings of the same port. No pair: `after`
// is less than kMinInterval later, at the same instant, or earlier; then `before` should stay
// the one to compare with. Bytes are known only between readings of one width of data, errors only
// between readings of one width of errors: a count that had stopped at 65,535 may go on at
// millions.
PortInterval Compare(const CounterReading& before, const CounterReading& after, double capacity);

// --- What is known of one channel ---

// A mean that forgets: what was measured a time t ago weighs e^(-t/T).
//
//     mean = sum over intervals of rate * w / sum of w,   w = e^(-age of its end / T) -
//                                                             e^(-age of its begin / T)
//
// Exact for intervals of any length, and from the first one on. Time in which nothing was measured
// lets what is known fade, not change.
class MovingAverage {
 public:
  // `rate` held for so many seconds, up to now. Both at least 0; the constant is above 0.
  void Add(double rate, double seconds, double constant_seconds) {
    const double kept = std::exp(-seconds / constant_seconds);
    sum_ = sum_ * kept + rate * (1 - kept);
    weight_ = weight_ * kept + (1 - kept);
  }
  // Nothing is known of so many seconds.
  void Skip(double seconds, double constant_seconds) {
    const double kept = std::exp(-seconds / constant_seconds);
    sum_ *= kept;
    weight_ *= kept;
  }
  bool empty() const { return weight_ <= kMinWeight; }
  double value() const { return empty() ? 0 : std::max(sum_ / weight_, 0.0); }

 private:
  // Below it the quotient of what has faded is noise.
  static constexpr double kMinWeight = 1e-12;
  double sum_ = 0, weight_ = 0;
};

// Load that was measured counts so long without another measurement; longer if readings are rarer.
inline constexpr absl::Duration kLoadLife = absl::Minutes(5);

// The load of one channel over time: moving average and peak of what was measured between readings.
class ChannelLoad {
 public:
  // What an earlier daemon measured, up to `until` by the monotonic clock: the average counts until
  // the first measurement here, or until it is too old; the peak stays.
  void Restore(const LinkLoadRecord& record, absl::Duration until);

  // `bytes` went over it in `length`, which ends at `now` by the monotonic and at `wall` by the
  // wall clock. `capacity` in bytes a second; 0, unknown: the load is 0. A lower bound counts where
  // it raises the average; what is unknown lets it fade. While a count stands at its end the
  // average stays as it is, and read() with it: a port that nobody clears would pass for idle.
  void Take(const Growth& bytes, absl::Duration length, double capacity, absl::Duration now,
            absl::Time wall, absl::Duration time_constant);

  // Share of the capacity, 0..1, as of `now`: 0 if the newest measurement is too old.
  double Average(double capacity, absl::Duration now) const;
  double peak() const { return peak_; }
  absl::Time peaked() const { return peaked_; }
  absl::Time read() const { return read_; }
  // Of the newest Take.
  Certainty certainty() const { return certainty_; }

 private:
  MovingAverage average_;    // bytes a second
  double restored_ = -1;     // share; below 0: none, or superseded
  absl::Duration measured_;  // end of the newest measurement, monotonic
  absl::Duration life_ = kLoadLife;
  double peak_ = 0;
  absl::Time peaked_ = absl::InfinitePast(), read_ = absl::InfinitePast();
  Certainty certainty_ = Certainty::kUnknown;
};

// What one port moved in the minute or the hour that is under way, until the slot is closed.
struct HistorySums : HistoryRow {
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
    peak_sent_per_second =
        std::max(peak_sent_per_second, static_cast<uint64_t>(interval.sent_rate() + 0.5));
    peak_received_per_second =
        std::max(peak_received_per_second, static_cast<uint64_t>(interval.received_rate() + 0.5));
  }

  // Without a row, readers take it that nothing moved in the whole slot.
  bool NeedsRow(absl::Duration slot_length) const {
    return sent_bytes > 0 || received_bytes > 0 || errors > 0 || length < 0.9 * slot_length;
  }
  HistoryRow Row(Guid of, uint8_t at) const {
    HistoryRow row = *this;
    row.node = of;
    row.port = at;
    return row;
  }
};

// Of a channel, and of the switch port that it leaves, if it leaves one.
struct DirectionState {
  bool has_reading = false;  // and so all up to `hour`; false for good if no switch is there
  CounterReading reading;    // the newest, which the next is compared with
  absl::Time read;           // its time by the wall clock
  double sent_rate = 0, received_rate = 0;  // bytes a second before it
  PortInterval interval;                    // that it ended
  uint64_t sweep = 0;                       // in which that was; 0: none
  bool counters_changed = false;            // since they were last written
  bool stop_is_told = false;                // that a count of data stands at its end
  HistorySums minute, hour;
  ChannelLoad load;
  double written_average = 0, written_peak = 0;
  absl::Time written = absl::InfinitePast();
};

// Node GUID and port at which the channel begins.
std::pair<Guid, PortNum> BeginOf(const Fabric& fabric, ChannelIndex channel);

// What it can carry; 0: unknown.
inline double BytesPerSecond(const Fabric& fabric, ChannelIndex channel) {
  return static_cast<double>(fabric.capacity_gbps(channel)) * 1e9 / 8;
}

// Whether it begins at the end that the store calls b.
bool FromB(const Fabric& fabric, ChannelIndex channel);

// The same direction of the same link in another fabric; nullopt: it is not there, or has no end
// at a switch.
std::optional<ChannelIndex> FindSame(const Fabric& from, ChannelIndex channel, const Fabric& in);

// Of `to`'s channels: those that `from` had, too, are moved. O(channels).
std::vector<DirectionState> CarryOver(const Fabric& from, std::vector<DirectionState> states,
                                      const Fabric& to);

PortCounterRecord RecordOf(Guid node, const DirectionState& state);

class ChannelStates {
 public:
  // What the last daemon stored; averages count that are not older than kLoadLife at `wall`.
  void Restore(absl::Span<const LinkLoadRecord> loads, absl::Time wall);
  // Until a fabric is adopted: this is the newest of which what was restored may be asked.
  void Await(const std::shared_ptr<const Fabric>& fabric, absl::Span<const int64_t> link_ids);

  // Begins a sweep: readings that are taken from here on are its own. The time since the one
  // before; 0: there was none.
  absl::Duration BeginSweep(const CounterSweep& sweep);
  // Takes the view's fabric for its own. Returns the one before if that was another, else null.
  std::shared_ptr<const Fabric> Adopt(const FabricView& view);
  void Take(const CounterReading& reading, absl::Time wall);
  // From all readings of the sweep.
  void UpdateLoads(absl::Time wall, absl::Duration time_constant);

  // The adopted fabric; null before the first reading. All below but MeasureIn need
  // one.
  const std::shared_ptr<const Fabric>& fabric() const { return fabric_; }
  uint64_t sweep() const { return sweep_; }
  absl::Duration now() const { return now_; }  // newest reading, monotonic
  int64_t link_id(ChannelIndex c) const { return link_ids_[c.value() / 2]; }
  DirectionState& state(ChannelIndex c) { return states_[c.value()]; }
  const DirectionState& state(ChannelIndex c) const { return states_[c.value()]; }
  absl::Span<DirectionState> states() { return absl::MakeSpan(states_); }
  // Whether the port that the channel leaves was read in this sweep and in the one before.
  bool IsFresh(ChannelIndex c) const {
    return state(c).sweep == sweep_ && state(c).interval.length > absl::ZeroDuration();
  }
  // Average load.
  double Share(ChannelIndex c) const {
    return state(c).load.Average(BytesPerSecond(*fabric_, c), now_);
  }
  // Of a channel of any fabric, `link_id` of which is given: what is known of it here, or was
  // restored.
  DirectionMeasure MeasureIn(const Fabric& fabric, ChannelIndex c, int64_t link_id) const;
  // The same; before a fabric is adopted, of the awaited one only.
  DirectionMeasure MeasureIn(const Fabric& fabric, ChannelIndex c) const;
  // Each switch port that has been read, by switch and port: what(node GUID, state).
  template <class What>
  void ForEachPort(What what) {
    for (uint32_t s = 0; s < fabric_->switch_count(); ++s) {
      const SwitchInfo& info = fabric_->switch_info(SwitchIndex(s));
      for (int port = 1; port <= info.port_count; ++port) {
        const ChannelIndex c =
            fabric_->channel_at(SwitchIndex(s), PortNum(static_cast<uint8_t>(port)));
        if (c != kNoChannel && state(c).has_reading) what(info.guid, state(c));
      }
    }
  }

 private:
  using LinkSide = std::pair<int64_t, bool>;  // link in the store, from_b

  LinkSide SideOf(const Fabric& fabric, ChannelIndex c, int64_t link_id) const {
    return {link_id, FromB(fabric, c)};
  }
  // 0: too old.
  double RestoredShare(const LinkLoadRecord& load) const;
  // Before and after the states are carried over from `old`, if there was one, to fabric_.
  void KeepPeaks(const Fabric& old);
  void RestoreLoads(const Fabric* old);

  std::shared_ptr<const Fabric> fabric_;   // null before the first reading
  std::shared_ptr<const Fabric> awaited_;  // until then: newest that was asked for
  std::vector<int64_t> link_ids_;          // [link] of it, or of the awaited
  std::vector<DirectionState> states_;     // [channel]
  // What the store had, until a first fabric; then of links that are not there.
  absl::flat_hash_map<LinkSide, LinkLoadRecord> restored_;
  absl::Time restored_at_;
  uint64_t sweep_ = 0;
  absl::Duration now_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_CHANNEL_STATES_H_
