// The shape that every unary handler shares: authorise (peer.h), convert, one call, status.
#ifndef COPPICE_DAEMON_RPC_UNARY_H_
#define COPPICE_DAEMON_RPC_UNARY_H_

#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "daemon/rpc/error_details.h"
#include "daemon/rpc/method_statistics.h"

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_UNARY_H_
