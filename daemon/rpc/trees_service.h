// The Trees service: coppice/v1/trees.proto over the manager. Status codes are stated there.
#ifndef COPPICE_DAEMON_RPC_TREES_SERVICE_H_
#define COPPICE_DAEMON_RPC_TREES_SERVICE_H_

#include "absl/functional/any_invocable.h"
#include "coppice/v1/trees.grpc.pb.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/message_pool.h"
#include "daemon/rpc/peer.h"
#include "daemon/rpc/watch_stream.h"
#include "daemon/rpc/worker_pool.h"

namespace coppice {

// Thread-safe. `manager`, the workers and `peers` outlive it and every call. Batches have workers
// of their own: planning one takes seconds, and single trees must not queue behind it.
class TreesService final : public v1::Trees::CallbackService {
 public:
  // `max_ranks`: the most ranks that a request may name (ManagerOptions::max_job_ranks).
  TreesService(Manager* manager, WorkerPool* workers, WorkerPool* batch_workers, Peers* peers,
               uint32_t max_ranks)
      : manager_(manager),
        workers_(workers),
        batch_workers_(batch_workers),
        peers_(peers),
        max_ranks_(max_ranks),
        watches_(manager) {
    SetMessageAllocatorFor_CreateTree(&created_);
    SetMessageAllocatorFor_ReleaseTree(&released_);
  }

  // Ends every open WatchTrees stream with UNAVAILABLE, and from now on new ones at once: a
  // shutdown need not wait for them.
  void CloseStreams() { watches_.Close(); }

  grpc::ServerUnaryReactor* CreateTree(grpc::CallbackServerContext* context,
                                       const v1::CreateTreeRequest* request,
                                       v1::Tree* response) override;
  grpc::ServerUnaryReactor* AdviseTree(grpc::CallbackServerContext* context,
                                       const v1::CreateTreeRequest* request,
                                       v1::Tree* response) override;
  grpc::ServerWriteReactor<v1::BatchCreateTreesUpdate>* BatchCreateTrees(
      grpc::CallbackServerContext* context, const v1::BatchCreateTreesRequest* request) override;
  grpc::ServerWriteReactor<v1::TreeChange>* WatchTrees(
      grpc::CallbackServerContext* context, const v1::WatchTreesRequest* request) override;
  grpc::ServerUnaryReactor* GetTree(grpc::CallbackServerContext* context,
                                    const v1::GetTreeRequest* request, v1::Tree* response) override;
  grpc::ServerUnaryReactor* ListTrees(grpc::CallbackServerContext* context,
                                      const v1::ListTreesRequest* request,
                                      v1::ListTreesResponse* response) override;
  grpc::ServerUnaryReactor* ReleaseTree(grpc::CallbackServerContext* context,
                                        const v1::ReleaseTreeRequest* request,
                                        v1::ReleaseTreeResponse* response) override;

 private:
  // Authorises and converts, then grants, or with `advise` only plans.
  grpc::ServerUnaryReactor* Plan(grpc::CallbackServerContext* context,
                                 const v1::CreateTreeRequest& request, bool advise,
                                 v1::Tree* response);
  // Runs `call` here or, for a communicator that takes long to plan, on a worker.
  void RunPlanning(size_t member_count, absl::AnyInvocable<void()> call);
  size_t MemberCount(const CreateTreeArgs& args);
  absl::Status Get(const v1::GetTreeRequest& request, v1::Tree& response);
  absl::Status List(const v1::ListTreesRequest& request, v1::ListTreesResponse& response);

  Manager* const manager_;
  WorkerPool* const workers_;
  WorkerPool* const batch_workers_;
  Peers* const peers_;
  const uint32_t max_ranks_;
  WatchStreams watches_;
  MessagePool<v1::CreateTreeRequest, v1::Tree> created_;
  MessagePool<v1::ReleaseTreeRequest, v1::ReleaseTreeResponse> released_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_TREES_SERVICE_H_
