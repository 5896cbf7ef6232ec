// Whether the daemon still answers, found out as a client would: over a connection of its own to
// its own address, with a call that goes through gRPC's threads and takes the manager's lock. What
// the watchdog of a service manager is to hear is that, not that some thread still turns.
#ifndef COPPICE_DAEMON_SERVICE_LIVENESS_H_
#define COPPICE_DAEMON_SERVICE_LIVENESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace coppice {

// Connects anew to "unix:PATH" and asks for the fabric. Any answer is one, also that there is no
// fabric yet; DEADLINE_EXCEEDED or UNAVAILABLE: there was none within `limit`. Blocks that long.
absl::Status AskOneself(const std::string& address, absl::Duration limit);

}  // namespace coppice

#endif  // COPPICE_DAEMON_SERVICE_LIVENESS_H_
