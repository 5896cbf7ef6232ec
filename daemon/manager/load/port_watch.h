// What of the readings is told as events: errors that rise on a link, and counts of data that stand
// at their end. Remembers what was told. Not thread-safe: the load keeper's lock guards it.
#ifndef COPPICE_DAEMON_MANAGER_LOAD_PORT_WATCH_H_
#define COPPICE_DAEMON_MANAGER_LOAD_PORT_WATCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/manager/load/channel_states.h"
#include "daemon/manager/load/port_rates.h"
#include "db/store.h"

namespace coppice {

// Tells when errors rise on a link, without repeating itself: once when they begin, once an hour
// while they go on, once when they are over. Knows no counters' history and no store.
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
// has not answered for a while, and once when all of its counters are read again. What is not told
// here is a packet that is lost now and then.

// Not thread-safe.
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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LOAD_PORT_WATCH_H_
