#include "daemon/rpc/jobs_service.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/calls/error_details.h"
#include "daemon/rpc/calls/listing_page.h"
#include "daemon/rpc/calls/peer.h"
#include "daemon/rpc/calls/unary.h"
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

grpc::ServerUnaryReactor* JobsService::RegisterJob(grpc::CallbackServerContext* context,
                                                   const v1::RegisterJobRequest* request,
                                                   v1::Job* response) {
  auto* const reactor = new UnaryCall(register_job_, peers_, context);
  absl::StatusOr<Peer> peer = peers_->Authorise(*context, "/coppice.v1.Jobs/RegisterJob", "job");
  if (!peer.ok()) return Finish(reactor, peer.status(), "job");
  const bool is_short = !request->all_endpoints() &&
                        static_cast<size_t>(request->endpoints_size()) <= kMaxRanksInline;
  auto call = [this, reactor, request, response, peer = *std::move(peer)] {
    absl::StatusOr<RegisterJobArgs> args = FromProto(*request);
    if (!args.ok()) {
      Finish(reactor, args.status(), "job");
      return;
    }
    args->actor = ActorOf(peer);
    args->owner = peer.user;
    manager_->RegisterJob(*std::move(args), [this, reactor, response](absl::StatusOr<JobView> job) {
      const size_t ranks = job.ok() ? job->record->endpoints.size() : 0;
      AnswerRanks(workers_, reactor, ranks, [this, reactor, response, job = std::move(job)] {
        if (job.ok()) Tell(*job, *response);
        Finish(reactor, job.status(), "job");
      });
    });
  };
  if (!is_short) return RunLater(workers_, reactor, "job", std::move(call));
  call();
  return reactor;
}

grpc::ServerUnaryReactor* JobsService::GetJob(grpc::CallbackServerContext*,
                                              const v1::GetJobRequest* request, v1::Job* response) {
  return AnswerLater(workers_, get_job_, JobObject(request->id()),
                     [this, request, response] { return Get(*request, *response); });
}

absl::Status JobsService::Get(const v1::GetJobRequest& request, v1::Job& response) {
  ASSIGN_OR_RETURN(const JobId id, ParseJobId(request.id()));
  ASSIGN_OR_RETURN(const JobView job, manager_->GetJob(id));
  Tell(job, response);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* JobsService::ListJobs(grpc::CallbackServerContext*,
                                                const v1::ListJobsRequest* request,
                                                v1::ListJobsResponse* response) {
  return AnswerLater(workers_, list_jobs_, "jobs",
                     [this, request, response] { return List(*request, *response); });
}

absl::Status JobsService::List(const v1::ListJobsRequest& request, v1::ListJobsResponse& response) {
  ASSIGN_OR_RETURN(const size_t size, PageSize(request.page_size()));
  ASSIGN_OR_RETURN(const int64_t after, ParseIdToken(request.page_token()));
  // One more than a page tells whether another follows.
  const std::vector<JobView> jobs = manager_->ListJobs(JobId(after), size + 1);
  const size_t shown = FillPage(jobs.size(), size, [&](size_t i) -> const v1::Job& {
    ToProto(jobs[i], *response.add_jobs());
    return response.jobs(static_cast<int>(i));
  });
  if (shown < jobs.size()) {
    response.set_next_page_token(absl::StrCat(jobs[shown - 1].record->id.value()));
  }
  return absl::OkStatus();
}

grpc::ServerBidiReactor<v1::KeepAliveRequest, v1::KeepAliveResponse>* JobsService::KeepAlive(
    grpc::CallbackServerContext* context) {
  return streams_.Open(manager_, peers_,
                       peers_->Authorise(*context, "/coppice.v1.Jobs/KeepAlive", ""));
}

grpc::ServerUnaryReactor* JobsService::EndJob(grpc::CallbackServerContext* context,
                                              const v1::EndJobRequest* request,
                                              v1::EndJobResponse* response) {
  auto* const reactor = new UnaryCall(end_job_, peers_, context);
  const std::string object = JobObject(request->id());
  const auto peer = peers_->Authorise(*context, "/coppice.v1.Jobs/EndJob", object);
  if (!peer.ok()) return Finish(reactor, peer.status(), object);
  const absl::StatusOr<JobId> id = ParseJobId(request->id());
  if (!id.ok()) return Finish(reactor, id.status(), object);
  const absl::Status allowed = MayChangeJob(*manager_, *peers_, *peer, *id);
  if (!allowed.ok()) return Finish(reactor, allowed, object);
  manager_->EndJob(
      *id,
      [reactor, response, object](absl::StatusOr<uint32_t> released) {
        if (released.ok()) response->set_released_trees(*released);
        Finish(reactor, released.status(), object);
      },
      ActorOf(*peer));
  return reactor;
}

void JobsService::Tell(const JobView& view, v1::Job& job) {
  ToProto(view, job);
  const std::shared_ptr<const FabricView> fabric = manager_->fabric();
  AddEndpoints(*view.record, fabric == nullptr ? nullptr : fabric->snapshot->fabric.get(), job);
}

}  // namespace coppice
