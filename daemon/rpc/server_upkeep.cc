#include "daemon/rpc/server_upkeep.h"

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <limits>

namespace coppice {
namespace {

// A caller that may not call more often waits about as long.
constexpr absl::Duration kUpkeepPeriod = absl::Milliseconds(20);
constexpr int kUpkeepPeriodsOfLook = 50;
// Memory goes back to the system when so much was freed since it did last; that takes milliseconds.
constexpr size_t kWorthTrimming = 8 << 20;

}  // namespace

ServerUpkeep::ServerUpkeep(Admission* admission, UnixConnections* connections)
    : thread_([this, admission, connections] { Run(admission, connections); }) {}

ServerUpkeep::~ServerUpkeep() {
  stop_.Notify();
  thread_.join();
}

void ServerUpkeep::Run(Admission* admission, UnixConnections* connections) {
  size_t least_free = std::numeric_limits<size_t>::max();  // since the last trim, which leaves it
  for (int period = 1; !stop_.WaitForNotificationWithTimeout(kUpkeepPeriod); ++period) {
    admission->Tick();
    if (period % kUpkeepPeriodsOfLook != 0) continue;
    connections->Tick();
    const size_t free = mallinfo2().fordblks;
    least_free = std::min(least_free, free);
    if (free - least_free < kWorthTrimming) continue;
    malloc_trim(0);
    least_free = free;
  }
}

}  // namespace coppice
