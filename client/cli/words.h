// The words of the command line for the proto's enums and times, and their inverse.
#ifndef COPPICE_CLIENT_CLI_WORDS_H_
#define COPPICE_CLIENT_CLI_WORDS_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/output.h"
#include "client/connection.h"
#include "coppice/v1/jobs.pb.h"
#include "coppice/v1/placements.pb.h"
#include "coppice/v1/switches.pb.h"
#include "coppice/v1/trees.pb.h"
#include "coppice/v1/types.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "proto/text/rank_ranges.h"

namespace coppice {

// "active" of JOB_STATE_ACTIVE; `unspecified` of the first, "?" of a number that has no name.
std::string WordOf(const google::protobuf::EnumDescriptor& type, int number,
                   const std::string& unspecified = "?");

template <class Enum>
std::string Word(Enum value) {
  return WordOf(*google::protobuf::GetEnumDescriptor<Enum>(), value);
}
inline std::string Word(v1::PlacementState value) {
  return WordOf(*v1::PlacementState_descriptor(), value, "unknown");
}
std::string Word(v1::TreeType type);        // "auto", "I", "II"
std::string Word(v1::TreeBuilder builder);  // "auto", "minimum-cost"

// What an option names; UNSPECIFIED: auto.
v1::Operation OperationNamed(const std::string& word);
v1::TreeBuilder BuilderNamed(const std::string& word);

// --op and --bytes, which `names` calls the former, with their checks.
void AddOperationOptions(CLI::App& command, const std::string& names, std::string& operation,
                         std::string& bytes);
// The sizes of --bytes in equal shares.
void FillSizes(const std::string& bytes, google::protobuf::RepeatedPtrField<v1::SizeShare>& sizes);

// "2026-01-31T12:00:00Z"
std::string TimeText(const google::protobuf::Timestamp& time);

// What a switch refused, for whatever reason.
uint64_t RefusedBy(const v1::SwitchCounters& counters);

// Nodes as people name them on the command line: a list in the grammar of Slurm's host lists,
// "n[001-128,130],login1", or a file with one or more a line. What goes to the daemon as it is, the
// daemon expands (proto/text/node_list.h).

inline constexpr char kNodeWordsHelp[] =
    "such as n[001-128,130], or a file with one or more a line; - for stdin";

// The lines of a file of that name (ReadMemberFile; "-" is standard input), else the text itself.
// NOT_FOUND: there is no such file, and the text, with a slash and neither bracket nor comma, is
// meant as one: it is not an endpoint's name, "n54/1".
absl::StatusOr<std::vector<std::string>> ReadNodeWords(const std::string& text);

// Each word that looks like a list, expanded.
absl::StatusOr<std::vector<std::string>> ExpandNodeWords(const std::vector<std::string>& words);

// Members of a communicator as people write them: a file with one endpoint a line, or rank ranges.

// What lines of a file ("-": standard input) say (text_file.h), without comments.
// Errors as ReadTextFile's.
absl::StatusOr<std::vector<std::string>> ReadMemberFile(const std::string& path);

// The words that --members names (ReadNodeWords), one at least. INVALID_ARGUMENT: none; no ranks at
// all would mean every rank of a job.
absl::StatusOr<std::vector<std::string>> ReadMemberWords(const std::string& members);

// The id of a job of these members or, of "", of all endpoints: for a daemon that lasts as long as
// the command. Errors of ReadMemberWords and of RegisterJob; they name `members`.
absl::StatusOr<std::string> RegisterMembers(Connection& connection, const std::string& members);

// Ranks of `job` that sit on the named endpoints: the n-th mention of an endpoint is the n-th rank
// there. A line is "host" (any of its ports) or "host/port". NOT_FOUND: names an endpoint that the
// job does not have, or not as often.
absl::StatusOr<std::vector<uint32_t>> RanksOfMembers(const v1::Job& job,
                                                     const std::vector<std::string>& members);

// The ranges as a request has them, behind those that are there.
void AddRanges(const std::vector<RankRange>& ranges,
               google::protobuf::RepeatedPtrField<v1::RankRange>& to);

// The GUID of the switch that is called so: by its GUID (16 digits, or up to 16 after 0x or, as a
// drawn tree has it, "switch:"), or by a description that only it has. NOT_FOUND: none is described
// so; INVALID_ARGUMENT: several are; errors of the call.
absl::StatusOr<std::string> FindSwitch(Connection& connection, const std::string& name);

// Of all switches. Empty if they cannot be listed: a tree may be granted, and must be shown.
SwitchNames NamesOfSwitches(Connection& connection);

// The file's text and name. Errors as ReadTextFile's.
absl::Status FillInputFile(const std::string& path, v1::InputFile& file);

// INVALID_ARGUMENT, naming the option: no duration above 0.
absl::Status ReadDurationOption(const std::string& option, const std::string& text,
                                google::protobuf::Duration& to);
// Into a field of a request, which stays unset if nothing is given.
template <class Request>
absl::Status FillDuration(const std::string& option, const std::string& text, Request& request,
                          google::protobuf::Duration* (Request::*field)()) {
  if (text.empty()) return absl::OkStatus();
  return ReadDurationOption(option, text, *(request.*field)());
}

// "node17" of "node17/2".
std::string HostOfMember(absl::string_view member);

// As ReadNodeWords; lists stay as they are, the daemon reads them. Nothing: none.
absl::Status FillNodes(const std::string& text,
                       google::protobuf::RepeatedPtrField<std::string>& nodes);

// "leaf-switches=1,distance=2": the fields of PlacementObjective, also written leaf_switches.
// INVALID_ARGUMENT: another form or name (lists the names), one twice, a weight that is no number
// from 0 up, or none above 0. (placement_commands.cc)
absl::StatusOr<v1::PlacementObjective> ParseWeights(absl::string_view text);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_WORDS_H_
