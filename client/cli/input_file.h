// Files that people name on the command line: sent to the daemon as they are, or read as lines.
#ifndef COPPICE_CLIENT_CLI_INPUT_FILE_H_
#define COPPICE_CLIENT_CLI_INPUT_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/connection.h"
#include "coppice/v1/jobs.pb.h"
#include "coppice/v1/trees.pb.h"
#include "proto/text/rank_ranges.h"

namespace coppice {

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

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_INPUT_FILE_H_
