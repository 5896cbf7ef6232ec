// How the agent starts a search for an order of ranks (daemon/search), as its file says: [search].
//
// Commands are lists of words, and no shell reads them. "{job}" in a word, or as a whole word, is
// what was asked for; what a process of the node may ask is checked (search_request.h), so it is
// never an option or a second word.
#ifndef COPPICE_AGENTS_NODE_SEARCH_SETTINGS_H_
#define COPPICE_AGENTS_NODE_SEARCH_SETTINGS_H_

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coppice {

struct SearchSettings {
  // "mpirun", "--hostfile", "{hostfile}", "coppice-search", "--job", "{job}", ...; none: the agent
  // starts no search.
  std::vector<std::string> command;
  // What makes the words behind it another user's process: "sudo", "-n", "-u", "#{uid}". None: only
  // the agent's own user may ask.
  std::vector<std::string> as_user;
  std::chrono::milliseconds max_budget{60'000};
  // Beside the budget: start and end of the ranks, the question, the order.
  std::chrono::milliseconds grace{60'000};
  size_t at_once = 2;
};

// What stands for what in a command. {hostfile} is the guard's to fill in.
inline constexpr char kHostFileWord[] = "{hostfile}";
using SearchWords = std::vector<std::pair<std::string, std::string>>;  // "{job}", "7"
std::vector<std::string> FillWords(const std::vector<std::string>& words,
                                   const SearchWords& values);
bool HasWord(const std::vector<std::string>& words, absl::string_view placeholder);

// INVALID_ARGUMENT names the key: a placeholder that there is not, an empty first word, words that
// do not say which job or which user, a bound out of range.
absl::Status CheckSearchSettings(const SearchSettings& settings);

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_SEARCH_SETTINGS_H_
