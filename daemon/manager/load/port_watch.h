// What of the readings is told as events: errors that rise on a link, and counts of data that stand
// at their end. Remembers what was told. Not thread-safe: the load keeper's lock guards it.
#ifndef COPPICE_DAEMON_MANAGER_LOAD_PORT_WATCH_H_
#define COPPICE_DAEMON_MANAGER_LOAD_PORT_WATCH_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "daemon/fabric/fabric.h"
#include "daemon/manager/load/channel_states.h"
#include "daemon/manager/load/error_watch.h"
#include "db/store.h"

namespace coppice {

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LOAD_PORT_WATCH_H_
