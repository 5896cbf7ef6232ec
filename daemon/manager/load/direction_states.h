// What is known of each channel of one fabric, and how it is carried over to the next fabric: by
// the two ends of its link, node GUID and port. What has another end is another link.
#ifndef COPPICE_DAEMON_MANAGER_LOAD_DIRECTION_STATES_H_
#define COPPICE_DAEMON_MANAGER_LOAD_DIRECTION_STATES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/manager/load/channel_load.h"
#include "daemon/manager/load/history_sums.h"
#include "daemon/manager/load/port_rates.h"
#include "db/store.h"

namespace coppice {

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LOAD_DIRECTION_STATES_H_
