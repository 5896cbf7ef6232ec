#include "daemon/rpc/jobs_service.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/rpc/identifiers.h"
#include "daemon/rpc/jobs_conversion.h"
#include "daemon/rpc/listing_page.h"
#include "daemon/rpc/ownership.h"
#include "daemon/rpc/unary.h"

namespace coppice {
namespace {

std::string ObjectOf(absl::string_view id) { return absl::StrCat("job:", id); }

}  // namespace

grpc::ServerUnaryReactor* JobsService::RegisterJob(grpc::CallbackServerContext* context,
                                                   const v1::RegisterJobRequest* request,
                                                   v1::Job* response) {
  auto* const reactor = new UnaryCall(register_job_, peers_, context);
  absl::StatusOr<Peer> peer = peers_->Authorise(*context, "/coppice.v1.Jobs/RegisterJob", "job");
  if (!peer.ok()) return Finish(reactor, peer.status(), "job");
  const bool is_short = !request->all_endpoints() &&
                        static_cast<size_t>(request->endpoints_size()) <= kMostRanksInline;
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
  return AnswerLater(workers_, get_job_, ObjectOf(request->id()),
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
  const std::string object = ObjectOf(request->id());
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
