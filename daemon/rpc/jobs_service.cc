#include "daemon/rpc/jobs_service.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/calls/error_details.h"
#include "daemon/rpc/conversion/identifiers.h"
#include "daemon/rpc/conversion/jobs_conversion.h"
#include "proto/request_check.h"

namespace coppice {
KeepAliveStream* KeepAliveStreams::Open(Manager* manager, const Peers* peers,
                                        const absl::StatusOr<Peer>& peer) {
  method_->Opened();
  auto* const stream = new KeepAliveStream(this, manager, peers, peer.ok() ? *peer : Peer());
  absl::Status status = peer.status();
  {
    absl::MutexLock lock(&mutex_);
    if (status.ok() && closed_) status = ShuttingDown();
    open_.insert(stream);
    // Begun under the lock: the stream may be done, and gone, as soon as it has begun.
    if (status.ok()) stream->Begin();
  }
  if (!status.ok()) stream->End(status);
  return stream;
}

void KeepAliveStreams::Close() {
  // Under the lock, so that no stream goes away (OnDone takes the lock) while it is ended.
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  for (KeepAliveStream* stream : open_) stream->End(ShuttingDown());
}

size_t KeepAliveStreams::size() const {
  absl::MutexLock lock(&mutex_);
  return open_.size();
}

void KeepAliveStreams::Remove(KeepAliveStream* stream) {
  absl::MutexLock lock(&mutex_);
  open_.erase(stream);
}

void KeepAliveStream::End(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (ended_) return;
    ended_ = true;
  }
  streams_->method_->Closed(status.code());
  Finish(ToWire(status, "keepalive"));
}

void KeepAliveStream::OnReadDone(bool ok) {
  if (!ok) return End(TakeRefusal());  // OK: the client has sent its last
  const absl::Status status = Answer();
  request_ = {};  // the next may be long in coming
  if (!status.ok()) return End(status);
  absl::MutexLock lock(&mutex_);
  if (!ended_) StartWrite(&response_);
}

void KeepAliveStream::OnWriteDone(bool ok) {
  if (!ok) return End(absl::OkStatus());
  absl::MutexLock lock(&mutex_);
  if (!ended_) StartRead(&request_);
}

void KeepAliveStream::OnCancel() { End(absl::CancelledError("keepalive: the client went away")); }

void KeepAliveStream::OnDone() {
  streams_->Remove(this);
  delete this;
}

absl::Status KeepAliveStream::Answer() {
  ASSIGN_OR_RETURN(const JobId id, ParseJobId(request_.id()));
  response_.Clear();
  response_.set_id(request_.id());
  if (!peer_.is_administrator) {
    const absl::StatusOr<JobView> present = manager_->GetJob(id);
    // Of what is gone there is nothing to change, and everybody may know that it is.
    if (present.ok() && present->record->state == JobState::kActive) {
      RETURN_IF_ERROR(peers_->MayChange(peer_, *present->record));
    }
  }
  const absl::StatusOr<JobView> job = manager_->KeepAlive(id);
  if (absl::IsNotFound(job.status())) return absl::OkStatus();  // state UNSPECIFIED: never known
  RETURN_IF_ERROR(job.status());
  response_.set_state(ToProto(job->record->state));
  // Nothing is left of the lease of a job that has ended, or whose end is on its way to the disk.
  const bool is_renewed = job->lease_left > absl::ZeroDuration();
  *response_.mutable_lease() = ToDuration(is_renewed ? job->record->lease : absl::ZeroDuration());
  return absl::OkStatus();
}

JobsService::JobsService(Manager* manager, WorkerPool* workers, Peers* peers,
                         MethodStatistics* statistics)
    : Service("coppice.v1.Jobs", peers, statistics),
      manager_(manager),
      workers_(workers),
      streams_(statistics->AddStream("Jobs.KeepAlive")) {
  const auto job = [](const auto& request) { return JobObject(request.id()); };
  Unary("RegisterJob", &JobsService::RegisterJob, "job", {.is_bulk = true, .is_change = true});
  Unary("GetJob", &JobsService::GetJob, job, {.pool = workers});
  Unary("ListJobs", &JobsService::ListJobs, "jobs", {.pool = workers});
  Dialogue("KeepAlive", &JobsService::KeepAlive);
  Unary("EndJob", &JobsService::EndJob, job, {.is_change = true});
}

void JobsService::RegisterJob(UnaryCall* call, const v1::RegisterJobRequest& request,
                              v1::Job& response) {
  const auto begin = [this, call, &request, &response] {
    absl::StatusOr<RegisterJobArgs> args = FromProto(request);
    if (!args.ok()) return call->End(args.status());
    args->actor = ActorOf(call->peer());
    args->owner = call->peer().user;
    manager_->RegisterJob(*std::move(args), [this, call, &response](absl::StatusOr<JobView> job) {
      AnswerJob(call, std::move(job), manager_, workers_, response);
    });
  };
  const bool is_short =
      !request.all_endpoints() && static_cast<size_t>(request.endpoints_size()) <= kMaxRanksInline;
  if (is_short) return begin();
  call->RunOn(workers_, begin);
}

absl::Status JobsService::GetJob(const v1::GetJobRequest& request, v1::Job& response) {
  ASSIGN_OR_RETURN(const JobId id, ParseJobId(request.id()));
  ASSIGN_OR_RETURN(const JobView job, manager_->GetJob(id));
  ToProto(job, manager_->fabric().get(), response);
  return absl::OkStatus();
}

absl::Status JobsService::ListJobs(const v1::ListJobsRequest& request,
                                   v1::ListJobsResponse& response) {
  ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(const int64_t after, ParseIdToken(request.page_token()));
  response.set_next_page_token(FillPage(
      manager_->ListJobs(JobId(after), size + 1), size, response.mutable_jobs(),
      [](const JobView& job, v1::Job& message) { ToProto(job, message); },
      [](const JobView& last) { return absl::StrCat(last.record->id.value()); }));
  return absl::OkStatus();
}

grpc::ServerBidiReactor<v1::KeepAliveRequest, v1::KeepAliveResponse>* JobsService::KeepAlive(
    const grpc::CallbackServerContext& context) {
  return streams_.Open(manager_, peers_,
                       peers_->Authorise(context, "/coppice.v1.Jobs/KeepAlive", ""));
}

void JobsService::EndJob(UnaryCall* call, const v1::EndJobRequest& request,
                         v1::EndJobResponse& response) {
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

void AnswerJob(UnaryCall* call, absl::StatusOr<JobView> job, Manager* manager, WorkerPool* workers,
               v1::Job& response) {
  const size_t ranks = job.ok() ? job->record->endpoints.size() : 0;
  call->AnswerRanks(workers, ranks, [call, manager, &response, job = std::move(job)] {
    if (job.ok()) ToProto(*job, manager->fabric().get(), response);
    call->End(job.status());
  });
}

}  // namespace coppice
