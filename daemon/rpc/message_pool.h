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
#ifndef COPPICE_DAEMON_RPC_MESSAGE_POOL_H_
#define COPPICE_DAEMON_RPC_MESSAGE_POOL_H_

#include <grpcpp/support/message_allocator.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace coppice {

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
  static constexpr size_t kMostIdle = 256;
  static constexpr size_t kMostBytesKept = 64 << 10;

  class Slot final : public grpc::MessageHolder<Request, Response> {
   public:
    explicit Slot(MessagePool* pool) : pool_(pool) {
      this->set_request(&request_);
      this->set_response(&response_);
    }
    void Release() override {
      std::unique_ptr<Slot> slot(this);
      if (request_.ByteSizeLong() + response_.ByteSizeLong() > kMostBytesKept) return;
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
    if (idle_.size() < kMostIdle) idle_.push_back(std::move(slot));
  }

  std::mutex mu_;
  std::vector<std::unique_ptr<Slot>> idle_;  // guarded by mu_
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_MESSAGE_POOL_H_
