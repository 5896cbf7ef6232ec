// Every channel of the fabric whose counters are read: adopts one fabric after the other, takes the
// readings of each sweep, and tells the load that follows.
//
//   stored loads --Restore--> until the first fabric, and of links that are away: peaks
//                                      |  ^
//   view --Adopt--> states [channel] <-+--+     carried over by the ends of each link
//   readings --Take, UpdateLoads--> states
//
// Invariants: what a link carried survives a fabric that has it again, and nothing else. Knows no
// store, no history and no tables. Not thread-safe: the load keeper's lock guards it.
#ifndef COPPICE_DAEMON_MANAGER_LOAD_CHANNEL_STATES_H_
#define COPPICE_DAEMON_MANAGER_LOAD_CHANNEL_STATES_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/manager/fabric_view.h"
#include "daemon/manager/load/direction_states.h"
#include "db/store.h"

namespace coppice {

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

  // The adopted fabric; null before the first reading. All below but ShareIn and MeasureIn need
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
  // restored; 0: nothing.
  double ShareIn(const Fabric& fabric, ChannelIndex c, int64_t link_id) const;
  // The same with all that is known; before a fabric is adopted, of the awaited one only.
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
  void RestoreLoads();
  // Before and after the states are carried over from `old` to fabric_.
  void KeepPeaks(const Fabric& old);
  void RestorePeaks(const Fabric& old);

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

#endif  // COPPICE_DAEMON_MANAGER_LOAD_CHANNEL_STATES_H_
