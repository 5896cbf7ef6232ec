#include "daemon/rpc/server_upkeep.h"

namespace coppice {
namespace {

// A caller that may not call more often waits about as long.
constexpr absl::Duration kUpkeepPeriod = absl::Milliseconds(20);
constexpr int kUpkeepPeriodsOfLook = 50;

}  // namespace

ServerUpkeep::ServerUpkeep(Admission* admission, UnixConnections* connections)
    : thread_([this, admission, connections] { Run(admission, connections); }) {}

ServerUpkeep::~ServerUpkeep() {
  stop_.Notify();
  thread_.join();
}

void ServerUpkeep::Run(Admission* admission, UnixConnections* connections) {
  for (int period = 1; !stop_.WaitForNotificationWithTimeout(kUpkeepPeriod); ++period) {
    admission->Tick();
    if (period % kUpkeepPeriodsOfLook == 0) connections->Tick();
  }
}

}  // namespace coppice
