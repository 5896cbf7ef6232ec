// Measured distances as the text of a matrix, which map --distance reads, here and in coppice-plan.
#ifndef COPPICE_CLIENT_CLI_DISTANCE_MATRIX_H_
#define COPPICE_CLIENT_CLI_DISTANCE_MATRIX_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coppice/v1/agents.pb.h"

namespace coppice {

// "node17" of "node17/2".
std::string HostOfMember(absl::string_view member);

// One row and column for each of `members`, in the order in which they are first named: the time of
// a byte, 1/bandwidth, and with `message_bytes` above 0 latency/message_bytes beside it; in units
// of the least between two hosts, 0 within a host. FAILED_PRECONDITION, naming two hosts:
// `distances` do not have the pair; INVALID_ARGUMENT: no members.
absl::StatusOr<std::string> DistanceMatrixText(const std::vector<std::string>& members,
                                               const v1::ListDistancesResponse& distances,
                                               double message_bytes);

}  // namespace coppice

#endif  // COPPICE_CLIENT_CLI_DISTANCE_MATRIX_H_
