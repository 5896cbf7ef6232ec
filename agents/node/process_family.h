// A command and whatever it starts, run to the end of the last of them.
//
// Processes that the command leaves behind become this process' children
// (PR_SET_CHILD_SUBREAPER), so groups and sessions of their own save none. Ranks on other nodes end
// by their launcher, which is told to end first and has a while for it.
#ifndef COPPICE_AGENTS_NODE_PROCESS_FAMILY_H_
#define COPPICE_AGENTS_NODE_PROCESS_FAMILY_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace coppice {

// Between the two ways to end a process: SIGTERM and SIGKILL.
inline constexpr std::chrono::milliseconds kFamilyPatience{5'000};
// Exit status of a command that cannot be started, as a shell's.
inline constexpr int kNoSuchCommand = 127;

// Runs the command with the caller's environment, nothing to read, and the caller's stderr. Ends
// it, and all that it started, when nobody has the other end of standard input open any more, at
// SIGTERM, SIGINT and SIGHUP, and when it has ended by itself. The command's exit status, or 128
// and the number of the signal that ended it. FAILED_PRECONDITION: it cannot be started. For a
// process that has no other children and no threads; it has fewer signals afterwards.
absl::StatusOr<int> RunFamily(const std::vector<std::string>& words);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_PROCESS_FAMILY_H_
