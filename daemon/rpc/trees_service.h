// The Trees service: coppice/v1/trees.proto over the manager. Status codes are stated there.
#ifndef COPPICE_DAEMON_RPC_TREES_SERVICE_H_
#define COPPICE_DAEMON_RPC_TREES_SERVICE_H_

#include <grpcpp/support/message_allocator.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "coppice/v1/trees.pb.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/calls/service.h"
#include "daemon/rpc/watch_stream.h"

namespace coppice {

// Messages of calls that one call after another reuses, with the memory they have: a tree's answer
// is dozens of small allocations, made on one thread and freed on another, which is the dearest
// case for malloc.
//
//   idle --AllocateMessages--> a call's request and answer --Release, cleared--> idle
//                                                          --large-------------> freed
//
// Not a protobuf arena: an arena gives each thread that builds a part of the message blocks of its
// own, and the answer is built on another thread than the request. Clear keeps the memory of lists,
// strings and of the submessages that are `optional` in the .proto.

// Thread-safe. Outlives every call that was given messages.
template <class Request, class Response>
class MessagePool final : public grpc::MessageAllocator<Request, Response> {
 public:
  grpc::MessageHolder<Request, Response>* AllocateMessages() override {
    {
      std::lock_guard lock(mu_);
      if (!idle_.empty()) {
        Slot* const slot = idle_.back().release();  // Release owns it again
        idle_.pop_back();
        return slot;
      }
    }
    return new Slot(this);
  }

 private:
  // Together at most 16 MiB: a burst of calls, or of large trees, leaves no more behind.
  static constexpr size_t kMaxIdle = 256;
  static constexpr size_t kMaxBytesKept = 64 << 10;

  class Slot final : public grpc::MessageHolder<Request, Response> {
   public:
    explicit Slot(MessagePool* pool) : pool_(pool) {
      this->set_request(&request_);
      this->set_response(&response_);
    }
    void Release() override {
      std::unique_ptr<Slot> slot(this);
      if (request_.ByteSizeLong() + response_.ByteSizeLong() > kMaxBytesKept) return;
      request_.Clear();
      response_.Clear();
      pool_->Keep(std::move(slot));
    }

   private:
    MessagePool* const pool_;
    Request request_;
    Response response_;
  };

  void Keep(std::unique_ptr<Slot> slot) {
    std::lock_guard lock(mu_);
    if (idle_.size() < kMaxIdle) idle_.push_back(std::move(slot));
  }

  std::mutex mu_;
  std::vector<std::unique_ptr<Slot>> idle_;  // guarded by mu_
};

// Thread-safe. The pointers outlive it and every call. Batches have workers of their own: planning
// one takes seconds, and single trees must not queue behind it.
class TreesService final : public Service {
 public:
  // `max_ranks`: the most ranks that a request may name (ManagerOptions::max_job_ranks).
  TreesService(Manager* manager, WorkerPool* workers, WorkerPool* batch_workers, Peers* peers,
               MethodStatistics* statistics, uint32_t max_ranks);

  // Ends every open WatchTrees stream with UNAVAILABLE, and from now on new ones at once: a
  // shutdown need not wait for them.
  void CloseStreams() { watches_.Close(); }
  size_t watchers() const { return watches_.size(); }

 private:
  void CreateTree(UnaryCall* call, const v1::CreateTreeRequest& request, v1::Tree& response);
  void AdviseTree(UnaryCall* call, const v1::CreateTreeRequest& request, v1::Tree& response);
  grpc::ServerWriteReactor<v1::BatchCreateTreesUpdate>* BatchCreateTrees(
      const grpc::CallbackServerContext& context, const v1::BatchCreateTreesRequest& request);
  grpc::ServerWriteReactor<v1::TreeChange>* WatchTrees(const grpc::CallbackServerContext& context,
                                                       const v1::WatchTreesRequest& request);
  void GetTree(UnaryCall* call, const v1::GetTreeRequest& request, v1::Tree& response);
  absl::Status ListTrees(const v1::ListTreesRequest& request, v1::ListTreesResponse& response);
  void ReleaseTree(UnaryCall* call, const v1::ReleaseTreeRequest& request,
                   v1::ReleaseTreeResponse& response);

  // Converts what is asked for, then grants it, or with `advise` only plans.
  void Plan(UnaryCall* call, const v1::CreateTreeRequest& request, bool advise, v1::Tree& response);
  absl::StatusOr<TreeView> Find(const v1::GetTreeRequest& request);
  absl::Status Tell(const TreeView& tree, const v1::GetTreeRequest& request, v1::Tree& response);

  Manager* const manager_;
  WorkerPool* const workers_;
  WorkerPool* const batch_workers_;
  const uint32_t max_ranks_;
  WatchStreams watches_;
  MethodStatistics::Method* const batch_create_trees_;  // counts its streams
  MessagePool<v1::CreateTreeRequest, v1::Tree> created_;
  MessagePool<v1::ReleaseTreeRequest, v1::ReleaseTreeResponse> released_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_TREES_SERVICE_H_
