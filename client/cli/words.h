// The words of the command line for the proto's enums and times, and their inverse.
#ifndef COPPICE_CLIENT_CLI_WORDS_H_
#define COPPICE_CLIENT_CLI_WORDS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coppice/v1/jobs.pb.h"
#include "coppice/v1/types.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace coppice {

std::string Word(v1::Operation operation);  // "allreduce"
std::string Word(v1::TreeType type);        // "I", "II"
std::string Word(v1::TreeBuilder builder);  // "hierarchical"
std::string Word(v1::RouteKind kind);       // "forwarding tables"
std::string Word(v1::JobState state);       // "active"

std::optional<v1::Operation> OperationNamed(const std::string& word);
std::optional<v1::TreeType> TypeNamed(const std::string& word);        // auto, 1, 2
std::optional<v1::TreeBuilder> BuilderNamed(const std::string& word);  // auto, kary, ...

// "2026-01-31T12:00:00Z"
std::string TimeText(const google::protobuf::Timestamp& time);

// Nodes as people name them on the command line: a list in the grammar of Slurm's host lists,
// "n[001-128,130],login1", or a file with one or more a line. What goes to the daemon as it is, the
// daemon expands (proto/text/node_list.h).

inline constexpr char kNodeWordsHelp[] =
    "such as n[001-128,130], or a file with one or more a line; - for stdin";

// The lines of a file of that name (input_file.h; "-" is standard input), else the text itself.
// NOT_FOUND: there is no such file, and the text, with a slash and neither bracket nor comma, is
// meant as one: it is not an endpoint's name, "n54/1".
absl::StatusOr<std::vector<std::string>> ReadNodeWords(const std::string& text);

// Each word that looks like a list, expanded.
absl::StatusOr<std::vector<std::string>> ExpandNodeWords(const std::vector<std::string>& words);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_WORDS_H_
