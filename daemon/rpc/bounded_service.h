// A service whose calls are admitted before anything of their requests is read: the one place in
// front of all handlers, which know nothing of it.
//
//   headers --> whose? --Admission--> read --> as large as it may be? what would it take? -->
//   handler
//                           |                          |                                       |
//                           +-- RESOURCE_EXHAUSTED ----+                       answer, held until
//                           read
//
// A stream of requests is admitted so, too; each of its messages is bounded as it comes
// (proto/request_check.h).
//
// gRPC reads the whole request of a unary call before a handler hears of the call, and parses it.
// So each method is registered as if it read its requests by itself, which is what a handler of
// gRPC's kind may do, and the generated handler is given the request when it has passed. Until then
// a call has at most the window of its stream in memory (server.cc).
//
// Uses grpc::internal as generated code does (rpc_service_method.h, server_callback_handlers.h).
#ifndef COPPICE_DAEMON_RPC_BOUNDED_SERVICE_H_
#define COPPICE_DAEMON_RPC_BOUNDED_SERVICE_H_

#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/message_allocator.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/rpc/calls/admission.h"
#include "daemon/rpc/calls/peer.h"
#include "daemon/rpc/listen/unix_connections.h"

namespace google::protobuf {
class Message;
class ServiceDescriptor;
}  // namespace google::protobuf

namespace coppice {

// How the requests and answers of a method are bounded.
struct BoundedMethod {
  static constexpr size_t kSmallRequest = 1 << 20;
  static constexpr size_t kBulkRequest = 0;  // as large as any may be

  std::string name;  // "CreateTree"
  size_t most_request_bytes = kSmallRequest;
  // The answer in what gRPC holds for a unary call; null: of another kind.
  google::protobuf::Message* (*answer_of)(void* holder) = nullptr;
  bool is_change = false;  // what it answers has been done, and is told whatever room there is
};

inline BoundedMethod Change(BoundedMethod method) {
  method.is_change = true;
  return method;
}

// The method of a service by its handler, which tells the types of its messages.
template <class Service, class Request, class Response>
BoundedMethod Bounded(absl::string_view name,
                      grpc::ServerUnaryReactor* (Service::*)(grpc::CallbackServerContext*,
                                                             const Request*, Response*),
                      size_t most_request_bytes = BoundedMethod::kSmallRequest) {
  return {std::string(name), most_request_bytes, [](void* holder) -> google::protobuf::Message* {
            return static_cast<grpc::MessageHolder<Request, Response>*>(holder)->response();
          }};
}

// What the calls of all services share. Outlives them.
struct Bounds {
  Admission* admission = nullptr;
  Peers* peers = nullptr;
  UnixConnections* connections = nullptr;
  size_t most_request_bytes = 0;   // of any method
  size_t most_request_memory = 0;  // that one request may take
};

class BoundedService final : public grpc::Service {
 public:
  // In front of `inner`, of a generated class derived from CallbackService, which outlives this and
  // is not registered itself. `methods`: all that are not as BoundedMethod says by default.
  BoundedService(grpc::Service* inner, const google::protobuf::ServiceDescriptor* descriptor,
                 const std::vector<BoundedMethod>& methods, const Bounds* bounds);

 private:
  std::deque<std::string> names_;  // gRPC keeps pointers
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_BOUNDED_SERVICE_H_
