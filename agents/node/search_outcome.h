// What is told of a search that did not go well: which command, how it ended, and what it said
// last.
#ifndef COPPICE_AGENTS_NODE_SEARCH_OUTCOME_H_
#define COPPICE_AGENTS_NODE_SEARCH_OUTCOME_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coppice {

// A command to be told, shortened if it is long.
std::string CommandText(const std::vector<std::string>& words);

// Of the end of what was said on stderr: what coppice-search said if it did, since launchers say
// more, and later; else the last lines. In one line of printable ASCII, "" if there is nothing.
std::string LastWords(absl::string_view said);

// Of a search's guard that ended by itself; `wait_status` as of waitpid(2). OK,
// FAILED_PRECONDITION: the command cannot be started, UNKNOWN: it failed.
absl::Status OutcomeOf(absl::string_view command, int wait_status, absl::string_view said);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_SEARCH_OUTCOME_H_
