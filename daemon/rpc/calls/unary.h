// The shape that every unary handler shares: authorise (peer.h), convert, one call, status.
#ifndef COPPICE_DAEMON_RPC_CALLS_UNARY_H_
#define COPPICE_DAEMON_RPC_CALLS_UNARY_H_

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/rpc/calls/call_under_way.h"
#include "daemon/rpc/calls/error_details.h"
#include "daemon/rpc/calls/method_statistics.h"
#include "daemon/rpc/calls/peer.h"
#include "daemon/rpc/calls/worker_pool.h"

namespace coppice {

// One call under way, counted in the statistics of its method. Made by the call's handler; deletes
// itself when it is done.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  explicit UnaryCall(MethodStatistics::Method* method)
      : method_(method), bounds_(CallUnderWay::OfThisThread()), begun_(Clock::now()) {}
  // One that changes something: that it went well is noted (Peers::NoteDone).
  UnaryCall(MethodStatistics::Method* method, Peers* peers,
            const grpc::CallbackServerContext* context)
      : method_(method),
        bounds_(CallUnderWay::OfThisThread()),
        begun_(Clock::now()),
        peers_(peers),
        context_(context) {}

  // Ends the call, once; `this` may be gone afterwards. `object`: what it was about.
  // RESOURCE_EXHAUSTED instead: its caller has left too much unread.
  void Answer(grpc::Status status, absl::string_view object = "") {
    if (status.ok() && peers_ != nullptr) peers_->NoteDone(*context_, method_->name(), object);
    if (status.ok() && bounds_ != nullptr) status = ToWire(bounds_->HoldAnswer(), "answer");
    const auto took = std::chrono::nanoseconds(Clock::now() - begun_);
    method_->Ended(static_cast<absl::StatusCode>(status.error_code()), took.count());
    Finish(status);
  }
  // The client has gone.
  bool is_cancelled() const { return is_cancelled_.load(std::memory_order_relaxed); }
  // Why its work is not to be begun; OK: it is.
  absl::Status WhyNot() const {
    if (is_cancelled()) return absl::CancelledError("the client went away");
    return bounds_ == nullptr ? absl::OkStatus() : bounds_->CanAnswer();
  }
  // For turns; empty: nobody's.
  std::string caller() const { return bounds_ == nullptr ? "" : bounds_->caller(); }

  void OnCancel() override { is_cancelled_.store(true, std::memory_order_relaxed); }
  void OnDone() override { delete this; }

 private:
  using Clock = std::chrono::steady_clock;

  MethodStatistics::Method* const method_;
  const std::shared_ptr<CallUnderWay> bounds_;  // null: the service is not bounded
  const Clock::time_point begun_;
  std::atomic<bool> is_cancelled_{false};
  Peers* const peers_ = nullptr;
  const grpc::CallbackServerContext* const context_ = nullptr;
};

// Ends the call with `status`, whose details name `object`. Returns it for gRPC, which may have
// deleted it by then unless this is the call's own handler.
inline grpc::ServerUnaryReactor* Finish(UnaryCall* call, absl::Status status,
                                        absl::string_view object) {
  call->Answer(ToWire(std::move(status), object), object);
  return call;
}

// A handler that only reads, which everybody may, and answers before it returns. `handle` is
// absl::Status().
template <class Handle>
grpc::ServerUnaryReactor* AnswerNow(MethodStatistics::Method* method, absl::string_view object,
                                    Handle handle) {
  auto* const call = new UnaryCall(method);
  return Finish(call, handle(), object);
}

// Calls of one caller that may wait for a worker: each holds its request, which may be large.
inline constexpr size_t kMaxWaitingCalls = 256;

// Has a worker run `task`, which ends `call`; callers take turns. One whose client has gone by
// then, or has left too much unread, does not run. UNAVAILABLE at once: too many others of the
// caller wait already.
inline grpc::ServerUnaryReactor* RunLater(WorkerPool* workers, UnaryCall* call,
                                          absl::string_view object, WorkerPool::Task task,
                                          size_t most = kMaxWaitingCalls) {
  const absl::StatusOr<WorkerPool::Ticket> queued = workers->SubmitUnlessFull(
      [call, task = std::move(task)]() mutable {
        const absl::Status needless = call->WhyNot();
        if (needless.ok()) return task();
        Finish(call, needless, "");
      },
      most, call->caller());
  return queued.ok() ? call : Finish(call, queued.status(), object);
}

// More ranks than this are looked up, or told, on a worker: about a millisecond's work.
inline constexpr size_t kMaxRanksInline = 2048;

// Runs `task`, which builds an answer of so many ranks and ends `call` with it: at once, or on a
// worker, as others wait for the threads of gRPC and of the store. Never refused, as what it tells
// may have been done.
template <class Task>
void AnswerRanks(WorkerPool* workers, UnaryCall* call, size_t ranks, Task task) {
  if (ranks <= kMaxRanksInline) return task();
  workers->Submit(std::move(task), call->caller());
}

// A handler that reads the database, or much, which everybody may, on a worker: gRPC's threads are
// few.
// `handle` is absl::Status(), and what it refers to lives as long as the call.
template <class Handle>
grpc::ServerUnaryReactor* AnswerLater(WorkerPool* workers, MethodStatistics::Method* method,
                                      std::string object, Handle handle) {
  auto* const call = new UnaryCall(method);
  return RunLater(workers, call, object,
                  [call, object, handle = std::move(handle)] { Finish(call, handle(), object); });
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CALLS_UNARY_H_
