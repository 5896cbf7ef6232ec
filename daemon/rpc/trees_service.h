// The Trees service: coppice/v1/trees.proto over the manager. Status codes are stated there.
#ifndef COPPICE_DAEMON_RPC_TREES_SERVICE_H_
#define COPPICE_DAEMON_RPC_TREES_SERVICE_H_

#include "coppice/v1/trees.grpc.pb.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/message_pool.h"
#include "daemon/rpc/method_statistics.h"
#include "daemon/rpc/peer.h"
#include "daemon/rpc/watch_stream.h"
#include "daemon/rpc/worker_pool.h"

namespace coppice {

// Thread-safe. The pointers outlive it and every call. Batches have workers
// of their own: planning one takes seconds, and single trees must not queue behind it.
class TreesService final : public v1::Trees::CallbackService {
 public:
  // `max_ranks`: the most ranks that a request may name (ManagerOptions::max_job_ranks).
  TreesService(Manager* manager, WorkerPool* workers, WorkerPool* batch_workers, Peers* peers,
               MethodStatistics* statistics, uint32_t max_ranks)
      : manager_(manager),
        workers_(workers),
        batch_workers_(batch_workers),
        peers_(peers),
        max_ranks_(max_ranks),
        watches_(statistics->AddStream("Trees.WatchTrees"),
                 "connect again and watch with the last resume token"),
        batch_create_trees_(statistics->AddStream("Trees.BatchCreateTrees")),
        create_tree_(statistics->AddUnary("Trees.CreateTree")),
        advise_tree_(statistics->AddUnary("Trees.AdviseTree")),
        get_tree_(statistics->AddUnary("Trees.GetTree")),
        list_trees_(statistics->AddUnary("Trees.ListTrees")),
        release_tree_(statistics->AddUnary("Trees.ReleaseTree")) {
    SetMessageAllocatorFor_CreateTree(&created_);
    SetMessageAllocatorFor_ReleaseTree(&released_);
  }

  // Ends every open WatchTrees stream with UNAVAILABLE, and from now on new ones at once: a
  // shutdown need not wait for them.
  void CloseStreams() { watches_.Close(); }
  size_t watchers() const { return watches_.size(); }

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
  // Converts what `peer` asks for, then grants it, or with `advise` only plans.
  grpc::ServerUnaryReactor* Plan(grpc::CallbackServerContext* context,
                                 const absl::StatusOr<Peer>& peer, MethodStatistics::Method* method,
                                 const v1::CreateTreeRequest& request, bool advise,
                                 v1::Tree* response);
  absl::StatusOr<TreeView> Find(const v1::GetTreeRequest& request);
  absl::Status Tell(const TreeView& tree, const v1::GetTreeRequest& request, v1::Tree& response);
  absl::Status List(const v1::ListTreesRequest& request, v1::ListTreesResponse& response);

  Manager* const manager_;
  WorkerPool* const workers_;
  WorkerPool* const batch_workers_;
  Peers* const peers_;
  const uint32_t max_ranks_;
  WatchStreams watches_;
  // What counts the calls.
  MethodStatistics::Method* const batch_create_trees_;
  MethodStatistics::Method* const create_tree_;
  MethodStatistics::Method* const advise_tree_;
  MethodStatistics::Method* const get_tree_;
  MethodStatistics::Method* const list_trees_;
  MethodStatistics::Method* const release_tree_;
  MessagePool<v1::CreateTreeRequest, v1::Tree> created_;
  MessagePool<v1::ReleaseTreeRequest, v1::ReleaseTreeResponse> released_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_TREES_SERVICE_H_
