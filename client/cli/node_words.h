// Nodes as people name them on the command line: a list in the grammar of Slurm's host lists,
// "n[001-128,130],login1", or a file with one or more a line. What goes to the daemon as it is, the
// daemon expands (daemon/fabric/node_list.h); here is what the client itself has to know.
#ifndef COPPICE_CLIENT_CLI_NODE_WORDS_H_
#define COPPICE_CLIENT_CLI_NODE_WORDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coppice {

inline constexpr char kNodeWordsHelp[] =
    "such as n[001-128,130], or a file with one or more a line; - for stdin";

// The lines of a file of that name (member_file.h; "-" is standard input), else the text itself.
// NOT_FOUND: there is no such file, and the text, with a slash and neither bracket nor comma, is
// meant as one: it is not an endpoint's name, "n54/1".
absl::StatusOr<std::vector<std::string>> ReadNodeWords(const std::string& text);

// The names that a list stands for, as the daemon reads it. INVALID_ARGUMENT says what is wrong
// with which name, or that there are more than kMostNodes.
inline constexpr size_t kMostNodes = size_t{1} << 20;
absl::StatusOr<std::vector<std::string>> ExpandNodeList(absl::string_view text);

// Whether it may stand for more than one name that is written so.
bool MayBeNodeList(absl::string_view text);

// Each word that looks like a list, expanded.
absl::StatusOr<std::vector<std::string>> ExpandNodeWords(const std::vector<std::string>& words);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_NODE_WORDS_H_
