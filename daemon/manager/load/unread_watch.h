// Switches whose counters are not read, as events: `switch.counters` once when a switch refuses, or
// has not answered for a while, and once when all of its counters are read again. What is not told
// here is a packet that is lost now and then.
#ifndef COPPICE_DAEMON_MANAGER_LOAD_UNREAD_WATCH_H_
#define COPPICE_DAEMON_MANAGER_LOAD_UNREAD_WATCH_H_

#include <cstddef>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "daemon/fabric/subnet_port.h"
#include "db/store.h"

namespace coppice {

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

#endif  // COPPICE_DAEMON_MANAGER_LOAD_UNREAD_WATCH_H_
