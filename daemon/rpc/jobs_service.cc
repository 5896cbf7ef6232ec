// The Jobs service: coppice/v1/jobs.proto over the manager. Status codes are stated there.

#include "coppice/v1/jobs.pb.h"
#include "daemon/fabric/endpoint_names.h"
#include "daemon/rpc/calls/streams.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/service.h"

namespace coppice {
namespace {

// Whether the lease, the endpoints and the request_id are acceptable is the manager's to say.
absl::StatusOr<RegisterJobArgs> ArgsOf(const v1::RegisterJobRequest& request) {
  RegisterJobArgs args;
  args.request_id = request.request_id();
  args.display_name = request.display_name();
  args.endpoints.assign(request.endpoints().begin(), request.endpoints().end());
  args.all_endpoints = request.all_endpoints();
  if (request.has_lease()) {
    ASSIGN_OR_RETURN(args.lease, FromProto(request.lease(), "lease"));
  }
  ASSIGN_OR_RETURN(args.partition, ParsePartitionNum(request.partition()));
  args.account = request.account();
  return args;
}

v1::JobState StateToProto(JobState state) {
  static constexpr std::pair<JobState, v1::JobState> kStates[] = {
      {JobState::kActive, v1::JOB_STATE_ACTIVE},
      {JobState::kEnded, v1::JOB_STATE_ENDED},
      {JobState::kExpired, v1::JOB_STATE_EXPIRED}};
  return WireOf(kStates, state);
}

// All but `endpoints`.
void ToProto(const JobView& view, v1::Job& job) {
  const JobRecord& record = *view.record;
  job.set_id(absl::StrCat(record.id.value()));
  job.set_display_name(record.name);
  job.set_owner(record.owner);
  job.set_state(StateToProto(record.state));
  job.set_rank_count(static_cast<uint32_t>(record.endpoints.size()) + record.dropped_ranks);
  *job.mutable_lease() = ToDuration(record.lease);
  *job.mutable_lease_left() = ToDuration(view.lease_left);
  *job.mutable_create_time() = ToTimestamp(record.created);
  job.set_tree_count(view.tree_count);
  job.mutable_lost_ranks()->Add(view.lost_ranks.begin(), view.lost_ranks.end());
  job.set_partition(record.partition.value());
  job.set_account(record.account);
}

// With `endpoints`, one "HOST/PORT" per rank; a port that the fabric (`view` may be null) does not
// hold any more is named by its GUID.
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

}  // namespace

class JobsService final : public Service {
 public:
  explicit JobsService(const ServiceParts& parts)
      : Service("coppice.v1.Jobs", parts), streams_(CountStreams("KeepAlive")) {
    const auto job = [](const auto& request) { return JobObject(request.id()); };
    Unary("RegisterJob", &JobsService::RegisterJob, "job", {.is_bulk = true, .is_change = true});
    Unary("GetJob", &JobsService::GetJob, job, {.pool = workers_});
    Unary("ListJobs", &JobsService::ListJobs, "jobs", {.pool = workers_});
    Dialogue("KeepAlive", &JobsService::KeepAlive, "");
    Unary("EndJob", &JobsService::EndJob, job, {.is_change = true});
  }

  void CloseStreams() override { streams_.Close(); }

 private:
  void RegisterJob(UnaryCall* call, const v1::RegisterJobRequest& request, v1::Job& response) {
    const auto begin = [this, call, &request, &response] {
      absl::StatusOr<RegisterJobArgs> args = ArgsOf(request);
      if (!args.ok()) return call->End(args.status());
      args->actor = ActorOf(call->peer());
      args->owner = call->peer().user;
      manager_->RegisterJob(*std::move(args), [this, call, &response](absl::StatusOr<JobView> job) {
        AnswerJob(call, std::move(job), manager_, workers_, response);
      });
    };
    const bool is_short = !request.all_endpoints() &&
                          static_cast<size_t>(request.endpoints_size()) <= kMaxRanksInline;
    if (is_short) return begin();
    call->RunOn(workers_, begin);
  }

  absl::Status GetJob(const v1::GetJobRequest& request, v1::Job& response) {
    ASSIGN_OR_RETURN(const JobId id, ParseJobId(request.id()));
    ASSIGN_OR_RETURN(const JobView job, manager_->GetJob(id));
    ToProto(job, manager_->fabric().get(), response);
    return absl::OkStatus();
  }

  absl::Status ListJobs(const v1::ListJobsRequest& request, v1::ListJobsResponse& response) {
    ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
    ASSIGN_OR_RETURN(const int64_t after, ParseIdToken(request.page_token()));
    response.set_next_page_token(FillPage(
        manager_->ListJobs(JobId(after), size + 1), size, response.mutable_jobs(),
        [](const JobView& job, v1::Job& message) { ToProto(job, message); },
        [](const JobView& last) { return absl::StrCat(last.record->id.value()); }));
    return absl::OkStatus();
  }

  grpc::ServerBidiReactor<v1::KeepAliveRequest, v1::KeepAliveResponse>* KeepAlive(
      const absl::StatusOr<Peer>& peer) {
    using Stream = AnswerStream<v1::KeepAliveRequest, v1::KeepAliveResponse>;
    const auto stream = std::make_shared<Stream>(&streams_, "keepalive",
                                                 [this, peer](const auto& request, auto& response) {
                                                   return Renew(*peer, request, response);
                                                 });
    return streams_.Open(stream, peer.status(), [&] { return stream->Read(); });
  }

  // INVALID_ARGUMENT: the id is not one. PERMISSION_DENIED: the job is another's.
  absl::Status Renew(const Peer& peer, const v1::KeepAliveRequest& request,
                     v1::KeepAliveResponse& response) {
    ASSIGN_OR_RETURN(const JobId id, ParseJobId(request.id()));
    response.set_id(request.id());
    if (!peer.is_administrator) {
      const absl::StatusOr<JobView> present = manager_->GetJob(id);
      // Of what is gone there is nothing to change, and everybody may know that it is.
      if (present.ok() && present->record->state == JobState::kActive) {
        RETURN_IF_ERROR(peers_->MayChange(peer, *present->record));
      }
    }
    const absl::StatusOr<JobView> job = manager_->KeepAlive(id);
    if (absl::IsNotFound(job.status())) return absl::OkStatus();  // state UNSPECIFIED: never known
    RETURN_IF_ERROR(job.status());
    response.set_state(StateToProto(job->record->state));
    // Nothing is left of the lease of a job that has ended, or whose end is on its way to the disk.
    const bool is_renewed = job->lease_left > absl::ZeroDuration();
    *response.mutable_lease() = ToDuration(is_renewed ? job->record->lease : absl::ZeroDuration());
    return absl::OkStatus();
  }

  void EndJob(UnaryCall* call, const v1::EndJobRequest& request, v1::EndJobResponse& response) {
    const absl::StatusOr<JobId> id = ParseJobId(request.id());
    absl::Status status = id.status();
    if (status.ok()) status = MayChangeJob(*manager_, *peers_, call->peer(), *id);
    if (!status.ok()) return call->End(status);
    manager_->EndJob(
        *id,
        [call, &response](absl::StatusOr<uint32_t> released) {
          if (released.ok()) response.set_released_trees(*released);
          call->End(released.status());
        },
        ActorOf(call->peer()));
  }

  OpenStreams streams_;
};

std::unique_ptr<Service> MakeJobsService(const ServiceParts& parts) {
  return std::make_unique<JobsService>(parts);
}

void AnswerJob(UnaryCall* call, absl::StatusOr<JobView> job, Manager* manager, WorkerPool* workers,
               v1::Job& response) {
  const size_t ranks = job.ok() ? job->record->endpoints.size() : 0;
  call->AnswerRanks(workers, ranks, [call, manager, &response, job = std::move(job)] {
    if (job.ok()) ToProto(*job, manager->fabric().get(), response);
    call->End(job.status());
  });
}

}  // namespace coppice
