// coppice-agent guard-search CONFIGURATION: runs the search of an agent's configuration, and ends
// all of it when whoever started it lets go of its standard input: the agent, on purpose or because
// it is dead. It runs as the search's user, whose processes the agent may not signal
// (search_process.h starts it).
//
//   agent --> sudo -u #1000 --> guard --> mpirun (process_family.h) --> ranks
//
// The command comes from the file and what is asked for from standard input: who lets the agent's
// user run this program as other users, with these words and no others, lets it run that command,
// not any. So the guard checks again what it reads, as far as it can: hosts and the server are
// taken on trust, and PATH is what the one before it (sudo's secure_path) leaves.
//
// Standard input: the number of bytes of a GuardedSearch (local.proto) in digits, a line feed, the
// message; then nothing.
#ifndef COPPICE_AGENTS_NODE_SEARCH_GUARD_H_
#define COPPICE_AGENTS_NODE_SEARCH_GUARD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/node/search_settings.h"
#include "coppice/v1/local.pb.h"

namespace coppice {

inline constexpr char kGuardCommand[] = "guard-search";

// What the guard reads.
std::string GuardInput(const v1::GuardedSearch& search);

// The words of the command for the user that runs this, {hostfile} still in them. Errors as
// CheckSearchRequest's; INVALID_ARGUMENT also: the server is none, or a host has no name that a
// launcher could be given.
absl::StatusOr<std::vector<std::string>> GuardedCommand(const SearchSettings& settings,
                                                        const v1::GuardedSearch& search,
                                                        uid_t user);

// `arguments` behind the command's name. The exit status of the process: the search's
// (process_family.h), or 1, with the reason on stderr.
int GuardSearch(const std::vector<std::string>& arguments);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_SEARCH_GUARD_H_
