#include "daemon/rpc/conversion/jobs_conversion.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/rpc/conversion/identifiers.h"

namespace coppice {
namespace {

constexpr int64_t kMaxDurationSeconds = 315'576'000'000;  // google/protobuf/duration.proto
constexpr int64_t kNanosPerSecond = 1'000'000'000;

}  // namespace

absl::StatusOr<absl::Duration> FromProto(const google::protobuf::Duration& duration,
                                         absl::string_view field) {
  if (std::abs(duration.nanos()) >= kNanosPerSecond || duration.seconds() > kMaxDurationSeconds ||
      duration.seconds() < -kMaxDurationSeconds) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", duration.seconds(), " s and ", duration.nanos(),
                     " ns is not a duration: give seconds and less than 1000000000 ns"));
  }
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

absl::StatusOr<RegisterJobArgs> FromProto(const v1::RegisterJobRequest& request) {
  RegisterJobArgs args;
  args.request_id = request.request_id();
  args.display_name = request.display_name();
  args.endpoints.assign(request.endpoints().begin(), request.endpoints().end());
  args.all_endpoints = request.all_endpoints();
  if (request.has_lease()) {
    const absl::StatusOr<absl::Duration> lease = FromProto(request.lease(), "lease");
    if (!lease.ok()) return lease.status();
    args.lease = *lease;
  }
  return args;
}

v1::JobState ToProto(JobState state) {
  static constexpr std::pair<JobState, v1::JobState> kStates[] = {
      {JobState::kActive, v1::JOB_STATE_ACTIVE},
      {JobState::kEnded, v1::JOB_STATE_ENDED},
      {JobState::kExpired, v1::JOB_STATE_EXPIRED}};
  return WireOf(kStates, state);
}

void ToProto(const JobView& view, v1::Job& job) {
  const JobRecord& record = *view.record;
  job.set_id(absl::StrCat(record.id.value()));
  job.set_display_name(record.name);
  job.set_owner(record.owner);
  job.set_state(ToProto(record.state));
  job.set_rank_count(static_cast<uint32_t>(record.endpoints.size()) + record.dropped_ranks);
  *job.mutable_lease() = ToDuration(record.lease);
  *job.mutable_lease_left() = ToDuration(view.lease_left);
  *job.mutable_create_time() = ToTimestamp(record.created);
  job.set_tree_count(view.tree_count);
  job.mutable_lost_ranks()->Add(view.lost_ranks.begin(), view.lost_ranks.end());
}

void ToProto(const JobView& job, const FabricView* view, v1::Job& message) {
  ToProto(job, message);
  const std::vector<Guid>& guids = job.record->endpoints;
  message.mutable_endpoints()->Reserve(static_cast<int>(guids.size()));
  const Fabric* const fabric = view == nullptr ? nullptr : view->snapshot->fabric.get();
  for (const Guid guid : guids) {
    const std::optional<EndpointIndex> endpoint =
        fabric == nullptr ? std::nullopt : fabric->FindEndpoint(guid);
    message.add_endpoints(endpoint ? EndpointName(*fabric, *endpoint) : ToString(guid));
  }
}

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  google::protobuf::Timestamp timestamp;
  const int64_t seconds = absl::ToUnixSeconds(time);
  timestamp.set_seconds(seconds);
  timestamp.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return timestamp;
}

google::protobuf::Duration ToDuration(absl::Duration duration) {
  google::protobuf::Duration converted;
  absl::Duration rest;
  converted.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  converted.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return converted;
}

}  // namespace coppice
