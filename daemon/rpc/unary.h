// The shape that every unary handler shares: authorise (peer.h), convert, one call, status.
#ifndef COPPICE_DAEMON_RPC_UNARY_H_
#define COPPICE_DAEMON_RPC_UNARY_H_

#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/rpc/error_details.h"
#include "daemon/rpc/method_statistics.h"
#include "daemon/rpc/worker_pool.h"

namespace coppice {

// One call under way, counted in the statistics of its method. Deletes itself when it is done.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  explicit UnaryCall(MethodStatistics::Method* method) : method_(method), begun_(Clock::now()) {}

  // Ends the call, once; `this` may be gone afterwards.
  void Answer(const grpc::Status& status) {
    const auto took = std::chrono::nanoseconds(Clock::now() - begun_);
    method_->Ended(static_cast<absl::StatusCode>(status.error_code()), took.count());
    Finish(status);
  }
  void OnDone() override { delete this; }

 private:
  using Clock = std::chrono::steady_clock;

  MethodStatistics::Method* const method_;
  const Clock::time_point begun_;
};

// Ends the call with `status`, whose details name `object`. Returns it for gRPC, which may have
// deleted it by then unless this is the call's own handler.
inline grpc::ServerUnaryReactor* Finish(UnaryCall* call, absl::Status status,
                                        absl::string_view object) {
  call->Answer(ToWire(std::move(status), object));
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

// Calls that may wait for a worker: each holds its request, which may be large.
inline constexpr size_t kMostWaitingCalls = 256;

// Has a worker run `task`, which ends `call`. UNAVAILABLE at once: too many others wait already.
inline grpc::ServerUnaryReactor* RunLater(WorkerPool* workers, UnaryCall* call,
                                          absl::string_view object, WorkerPool::Task task) {
  if (workers->SubmitUnlessFull(std::move(task), kMostWaitingCalls).has_value()) return call;
  return Finish(call,
                absl::UnavailableError(
                    absl::StrCat(kMostWaitingCalls, " calls wait for a thread; try again")),
                object);
}

// A handler that reads the database, which everybody may, on a worker: gRPC's threads are few.
// `handle` is absl::Status(), and what it refers to lives as long as the call.
template <class Handle>
grpc::ServerUnaryReactor* AnswerLater(WorkerPool* workers, MethodStatistics::Method* method,
                                      std::string object, Handle handle) {
  auto* const call = new UnaryCall(method);
  return RunLater(workers, call, object,
                  [call, object, handle = std::move(handle)] { Finish(call, handle(), object); });
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_UNARY_H_
