// How a command fails: one form of words, of daemon and agent as well, and a status that says of
// what kind the error was, so that scripts need not read them. Daemon and agent end with
// kWrongUsage or kFailed.
#ifndef COPPICE_PROTO_TEXT_EXIT_STATUS_H_
#define COPPICE_PROTO_TEXT_EXIT_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coppice {

inline constexpr int kDone = 0, kFailed = 1, kWrongUsage = 2, kNotFound = 3, kNotAllowed = 4,
                     kUnreachable = 5, kRefused = 6, kUnhealthy = 7;

struct ExitStatus {
  int status;
  absl::string_view meaning;
};
// --help ends with them, from there the man pages have them; a test holds README.md of client/ to
// them.
inline constexpr ExitStatus kExitStatuses[] = {
    {kDone, "done"},
    {kFailed, "failed for a reason that is not below"},
    {kWrongUsage, "wrong usage, also of a value that only the daemon can judge"},
    {kNotFound, "what was named is not there"},
    {kNotAllowed, "the caller may not do that"},
    {kUnreachable, "no daemon, or no answer in time"},
    {kRefused,
     "refused for now: entries, nodes or a quota are used up, or the state of things does not "
     "allow "
     "it"},
    {kUnhealthy, "`coppicectl status`: the daemon answers, and something is wrong with it"},
};
// "Exit status:" and a line each, for the end of --help.
std::string ExitStatusHelp();

int ExitStatusOf(const absl::Status& status);

// "error: MESSAGE [NOT_FOUND]", as it may be shown; on as many lines as the message has.
std::string ErrorLine(const absl::Status& status);
// Of a program that serves: tells it on stderr, and returns kWrongUsage or kFailed.
int FailProgram(const absl::Status& status);
// Of a command line that is wrong: an ErrorLine, and where to read more. Ends its last line.
std::string UsageError(absl::string_view message);

}  // namespace coppice

#endif  // COPPICE_PROTO_TEXT_EXIT_STATUS_H_
