// The Jobs service: coppice/v1/jobs.proto over the manager. Status codes are stated there.
#ifndef COPPICE_DAEMON_RPC_JOBS_SERVICE_H_
#define COPPICE_DAEMON_RPC_JOBS_SERVICE_H_

#include <memory>

#include "coppice/v1/jobs.grpc.pb.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/keepalive_stream.h"
#include "daemon/rpc/method_statistics.h"
#include "daemon/rpc/peer.h"
#include "daemon/rpc/worker_pool.h"

namespace coppice {

// Thread-safe. The pointers outlive it and every call.
class JobsService final : public v1::Jobs::CallbackService {
 public:
  JobsService(Manager* manager, WorkerPool* workers, Peers* peers, MethodStatistics* statistics)
      : manager_(manager),
        workers_(workers),
        peers_(peers),
        streams_(statistics->AddStream("Jobs.KeepAlive")),
        register_job_(statistics->AddUnary("Jobs.RegisterJob")),
        get_job_(statistics->AddUnary("Jobs.GetJob")),
        list_jobs_(statistics->AddUnary("Jobs.ListJobs")),
        end_job_(statistics->AddUnary("Jobs.EndJob")) {}

  // Ends every open KeepAlive stream with UNAVAILABLE, and from now on new ones at once: a
  // shutdown need not wait for them.
  void CloseStreams() { streams_.Close(); }
  size_t keepalives() const { return streams_.size(); }

  grpc::ServerUnaryReactor* RegisterJob(grpc::CallbackServerContext* context,
                                        const v1::RegisterJobRequest* request,
                                        v1::Job* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request, v1::Job* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerBidiReactor<v1::KeepAliveRequest, v1::KeepAliveResponse>* KeepAlive(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* EndJob(grpc::CallbackServerContext* context,
                                   const v1::EndJobRequest* request,
                                   v1::EndJobResponse* response) override;

 private:
  absl::Status Get(const v1::GetJobRequest& request, v1::Job& response);
  absl::Status List(const v1::ListJobsRequest& request, v1::ListJobsResponse& response);
  // With its endpoints.
  void Tell(const JobView& view, v1::Job& job);

  Manager* const manager_;
  WorkerPool* const workers_;
  Peers* const peers_;
  KeepAliveStreams streams_;
  // What counts the calls.
  MethodStatistics::Method* const register_job_;
  MethodStatistics::Method* const get_job_;
  MethodStatistics::Method* const list_jobs_;
  MethodStatistics::Method* const end_job_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_JOBS_SERVICE_H_
