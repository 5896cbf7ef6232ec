// How a command fails: one form of words, of daemon and agent as well, and a status that says of
// what kind the error was, so that scripts need not read them. Daemon and agent end with kFailed.
#ifndef COPPICE_PROTO_TEXT_EXIT_STATUS_H_
#define COPPICE_PROTO_TEXT_EXIT_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coppice {

// README.md of client/ and the man pages tell them.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;       // for another reason; `status`: something is wrong
inline constexpr int kWrongUsage = 2;   // also of a value that only the planner can judge
inline constexpr int kNotFound = 3;     // what was named is not there
inline constexpr int kNotAllowed = 4;   // to this caller
inline constexpr int kUnreachable = 5;  // no daemon, or no answer in time
inline constexpr int kRefused = 6;      // not now: entries, nodes or a quota are used up, say

int ExitStatusOf(const absl::Status& status);

// "error: MESSAGE [NOT_FOUND]", as it may be shown; on as many lines as the message has.
std::string ErrorLine(const absl::Status& status);
// Of a command line that is wrong: an ErrorLine, and where to read more. Ends its last line.
std::string UsageError(absl::string_view message);

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_EXIT_STATUS_H_
