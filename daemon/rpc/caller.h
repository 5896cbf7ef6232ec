// Whose call it is, as far as bounds go: for whom it is made, and where nobody has a name, the
// address that it comes from.
#ifndef COPPICE_DAEMON_RPC_CALLER_H_
#define COPPICE_DAEMON_RPC_CALLER_H_

#include <grpcpp/server_context.h>

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "daemon/rpc/admission.h"
#include "daemon/rpc/peer.h"

namespace coppice {

// Of whom somebody else says that the call is his, has bounds of his own for each who says so:
// nobody takes another's places by naming him. Readers without a name are told apart by address, by
// network over IPv6, and have one bound together as those of an agent have. `connection`: of the
// context, as gRPC tells it ("fd:7", "ipv4:10.0.0.1:4711").
Caller CallerOf(Peers& peers, const grpc::CallbackServerContext& context,
                absl::string_view connection);

// The descriptor of a connection that was accepted at a Unix socket.
std::optional<int> DescriptorOf(absl::string_view connection);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CALLER_H_
