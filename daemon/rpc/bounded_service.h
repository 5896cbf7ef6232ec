// A service whose calls are admitted before anything of their requests is read: the one place in
// front of all handlers, which know nothing of it.
//
//   headers --> whose? --Admission--> read --> too large? what would it take? --> handler
//                          |                     |                                  |
//                          +-RESOURCE_EXHAUSTED--+             answer, held until it is read
//
// A stream of requests is admitted so, too; each of its messages is bounded as it comes
// (proto/request_check.h). Why every method is registered as a dialogue: README.md. Uses
// grpc::internal as generated code does (rpc_service_method.h, server_callback_handlers.h).
#ifndef COPPICE_DAEMON_RPC_BOUNDED_SERVICE_H_
#define COPPICE_DAEMON_RPC_BOUNDED_SERVICE_H_

#include <grpcpp/impl/service_type.h>

#include <cstddef>
#include <memory>

#include "daemon/rpc/calls/admission.h"
#include "daemon/rpc/calls/peer.h"
#include "daemon/rpc/listen/connections.h"
#include "daemon/rpc/service.h"

namespace coppice {

// What the calls of all services share. Outlives them.
struct Bounds {
  Admission* admission = nullptr;
  Peers* peers = nullptr;
  Connections* connections = nullptr;
  size_t most_request_bytes = 0;   // of any method
  size_t most_request_memory = 0;  // that one request may take
};

// In front of `service`. Both outlive it.
std::unique_ptr<grpc::Service> MakeBoundedService(const Service& service, const Bounds* bounds);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_BOUNDED_SERVICE_H_
