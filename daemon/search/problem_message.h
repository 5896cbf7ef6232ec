// A mapping problem as the message that the daemon answers with and that rank 0 tells the others.
#ifndef COPPICE_DAEMON_SEARCH_PROBLEM_MESSAGE_H_
#define COPPICE_DAEMON_SEARCH_PROBLEM_MESSAGE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coppice/v1/mapping.pb.h"
#include "daemon/mapping/mapping_problem.h"

namespace coppice {

// Fills in pattern, places and distances. Errors as Flatten.
absl::Status ToProto(const MappingProblem& problem, v1::MappingProblem& message);

// For a search by QAP cost. INVALID_ARGUMENT: lists of unlike lengths, and as Unflatten.
absl::StatusOr<MappingProblem> FromProto(const v1::MappingProblem& message);

}  // namespace coppice

#endif  // COPPICE_DAEMON_SEARCH_PROBLEM_MESSAGE_H_
