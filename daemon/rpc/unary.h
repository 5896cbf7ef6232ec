// The shape that every unary handler shares: authorise (peer.h), convert, one call, status.
#ifndef COPPICE_DAEMON_RPC_UNARY_H_
#define COPPICE_DAEMON_RPC_UNARY_H_

#include <grpcpp/server_context.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "daemon/rpc/error_details.h"

namespace coppice {

// Ends the call with `status`, whose details name `object`.
inline grpc::ServerUnaryReactor* Finish(grpc::ServerUnaryReactor* reactor, absl::Status status,
                                        absl::string_view object) {
  reactor->Finish(ToWire(std::move(status), object));
  return reactor;
}

// A handler that only reads, which everybody may, and answers before it returns. `handle` is
// absl::Status().
template <class Handle>
grpc::ServerUnaryReactor* AnswerNow(grpc::CallbackServerContext* context, absl::string_view object,
                                    Handle handle) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  return Finish(reactor, handle(), object);
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_UNARY_H_
