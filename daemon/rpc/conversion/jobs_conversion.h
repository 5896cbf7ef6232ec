// coppice.v1.Job and its requests <-> the manager's plain structs.
#ifndef COPPICE_DAEMON_RPC_CONVERSION_JOBS_CONVERSION_H_
#define COPPICE_DAEMON_RPC_CONVERSION_JOBS_CONVERSION_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coppice/v1/jobs.pb.h"
#include "daemon/manager/fabric_view.h"
#include "daemon/manager/requests.h"

namespace coppice {

// INVALID_ARGUMENT: a duration that is out of protobuf's range. Whether the lease, the endpoints
// and the request_id are acceptable is the manager's to say.
absl::StatusOr<RegisterJobArgs> FromProto(const v1::RegisterJobRequest& request);

v1::JobState ToProto(JobState state);

// All but `endpoints`.
void ToProto(const JobView& view, v1::Job& job);

// With `endpoints`, one "HOST/PORT" per rank; a port that the fabric (`view` may be null) does not
// hold any more is named by its GUID.
void ToProto(const JobView& job, const FabricView* view, v1::Job& message);

// INVALID_ARGUMENT, naming `field`: out of protobuf's range.
absl::StatusOr<absl::Duration> FromProto(const google::protobuf::Duration& duration,
                                         absl::string_view field);
google::protobuf::Timestamp ToTimestamp(absl::Time time);
google::protobuf::Duration ToDuration(absl::Duration duration);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CONVERSION_JOBS_CONVERSION_H_
