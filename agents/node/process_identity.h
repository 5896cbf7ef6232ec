// Processes of this node, told apart by number and start time: numbers are used again.
//
// An agent that cannot look (no descriptor is left, /proc is mounted with hidepid) does not know
// that anybody is gone: who says so ends a job.
#ifndef COPPICE_AGENTS_NODE_PROCESS_IDENTITY_H_
#define COPPICE_AGENTS_NODE_PROCESS_IDENTITY_H_

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coppice {

struct ProcessIdentity {
  int64_t pid = 0;
  uint64_t start_time = 0;  // in ticks since the node started: field 22 of /proc/PID/stat

  friend auto operator<=>(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// The process with that number. NOT_FOUND: there is none, or it has ended and nobody has waited for
// it yet. UNAVAILABLE: it cannot be looked at now.
absl::StatusOr<ProcessIdentity> FindProcess(int64_t pid);
// Whose it is, also of one that its owner may not trace. Errors as FindProcess.
absl::StatusOr<uid_t> OwnerOfProcess(int64_t pid);
// It is known to have ended. False: it lives, or nobody can tell now.
bool IsGone(const ProcessIdentity& process);

// Start time out of the text of /proc/PID/stat. NOT_FOUND: it has ended; a process whose first
// thread has ended lives for as long as another does. UNAVAILABLE: this is no such text.
absl::StatusOr<uint64_t> ParseStartTime(absl::string_view stat);

// Different after each start of the node; start times of one mean nothing in another. Empty: nobody
// can tell now. Thread-safe.
std::string BootId();

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PROCESS_IDENTITY_H_
