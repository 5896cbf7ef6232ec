// The Jobs service: coppice/v1/jobs.proto over the manager. Status codes are stated there.
#ifndef COPPICE_DAEMON_RPC_JOBS_SERVICE_H_
#define COPPICE_DAEMON_RPC_JOBS_SERVICE_H_

#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "coppice/v1/jobs.pb.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/calls/service.h"

namespace coppice {

// The streams of Jobs.KeepAlive: one reactor per stream, and the set of those that are open, so
// that a shutdown can end them.

class KeepAliveStream;

// Thread-safe; outlives every stream that it opened.
class KeepAliveStreams final {
 public:
  // `method` counts the streams.
  explicit KeepAliveStreams(MethodStatistics::Method* method) : method_(method) {}

  // A stream that renews the leases of jobs that `peer` may change; it ends at once with `peer` if
  // that is an error. It deletes itself when its call is done.
  KeepAliveStream* Open(Manager* manager, const Peers* peers, const absl::StatusOr<Peer>& peer);

  // Ends all with UNAVAILABLE, and later ones at once.
  void Close();
  size_t size() const;

 private:
  friend class KeepAliveStream;
  void Remove(KeepAliveStream* stream);

  MethodStatistics::Method* const method_;
  mutable absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<KeepAliveStream*> open_ ABSL_GUARDED_BY(mutex_);
};

// Reads one request, answers it, reads the next: at most one operation is under way each way.
class KeepAliveStream final
    : public grpc::ServerBidiReactor<v1::KeepAliveRequest, v1::KeepAliveResponse> {
 public:
  KeepAliveStream(KeepAliveStreams* streams, Manager* manager, const Peers* peers, Peer peer)
      : streams_(streams), manager_(manager), peers_(peers), peer_(std::move(peer)) {}

  void Begin() { StartRead(&request_); }
  // Ends the call with `status` once; later calls do nothing.
  void End(const absl::Status& status);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // INVALID_ARGUMENT: the id is not one. PERMISSION_DENIED: the job is another's.
  absl::Status Answer();

  KeepAliveStreams* const streams_;
  Manager* const manager_;
  const Peers* const peers_;
  const Peer peer_;
  v1::KeepAliveRequest request_;
  v1::KeepAliveResponse response_;
  absl::Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// Ends a call that registered a job, or started one, with it, and with its endpoints.
void AnswerJob(UnaryCall* call, absl::StatusOr<JobView> job, Manager* manager, WorkerPool* workers,
               v1::Job& response);

// Thread-safe. The pointers outlive it and every call.
class JobsService final : public Service {
 public:
  JobsService(Manager* manager, WorkerPool* workers, Peers* peers, MethodStatistics* statistics);

  // Ends every open KeepAlive stream with UNAVAILABLE, and from now on new ones at once: a
  // shutdown need not wait for them.
  void CloseStreams() { streams_.Close(); }
  size_t keepalives() const { return streams_.size(); }

 private:
  void RegisterJob(UnaryCall* call, const v1::RegisterJobRequest& request, v1::Job& response);
  absl::Status GetJob(const v1::GetJobRequest& request, v1::Job& response);
  absl::Status ListJobs(const v1::ListJobsRequest& request, v1::ListJobsResponse& response);
  grpc::ServerBidiReactor<v1::KeepAliveRequest, v1::KeepAliveResponse>* KeepAlive(
      const grpc::CallbackServerContext& context);
  void EndJob(UnaryCall* call, const v1::EndJobRequest& request, v1::EndJobResponse& response);

  Manager* const manager_;
  WorkerPool* const workers_;
  KeepAliveStreams streams_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_JOBS_SERVICE_H_
