// Who calls: the one place where a service learns, and may refuse, its caller. The Unix socket's
// permissions decide today who may call at all; a stronger check belongs here and nowhere else.
#ifndef COPPICE_DAEMON_RPC_PEER_H_
#define COPPICE_DAEMON_RPC_PEER_H_

#include <grpcpp/server_context.h>

#include <string>

#include "absl/status/statusor.h"

namespace coppice {

struct Peer {
  std::string user;  // "unknown" if the transport does not say
};

// PERMISSION_DENIED or UNAUTHENTICATED: the caller may not call. Cheap; called once per call.
absl::StatusOr<Peer> Authorise(const grpc::CallbackServerContext& context);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_PEER_H_
