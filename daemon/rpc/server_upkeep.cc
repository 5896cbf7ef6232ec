#include "daemon/rpc/server_upkeep.h"

#include <malloc.h>

#include <algorithm>
#include <cstdint>

#include "daemon/base/process.h"

namespace coppice {
namespace {

// A caller that may not call more often waits about as long.
constexpr absl::Duration kUpkeepPeriod = absl::Milliseconds(20);
constexpr int kUpkeepPeriodsOfLook = 50;
// Memory goes back to the system, which takes milliseconds, when since it last did so much more is
// free, or the process has grown by so much: free is also what went back, and what of that was
// taken and freed between two looks does not show.
constexpr uint64_t kWorthTrimming = 8 << 20;

}  // namespace

ServerUpkeep::ServerUpkeep(Admission* admission, UnixConnections* connections)
    : thread_([this, admission, connections] { Run(admission, connections); }) {}

ServerUpkeep::~ServerUpkeep() {
  stop_.Notify();
  thread_.join();
}

void ServerUpkeep::Run(Admission* admission, UnixConnections* connections) {
  // Since the last trim.
  uint64_t least_resident = ReadResidentBytes(), least_free = mallinfo2().fordblks;
  for (int period = 1; !stop_.WaitForNotificationWithTimeout(kUpkeepPeriod); ++period) {
    admission->Tick();
    if (period % kUpkeepPeriodsOfLook != 0) continue;
    connections->Tick();
    const uint64_t resident = ReadResidentBytes();
    const uint64_t free = mallinfo2().fordblks;
    least_resident = std::min(least_resident, resident);
    least_free = std::min(least_free, free);
    if (resident - least_resident < kWorthTrimming && free - least_free < kWorthTrimming) continue;
    malloc_trim(0);
    least_resident = ReadResidentBytes();
    least_free = mallinfo2().fordblks;
  }
}

}  // namespace coppice
