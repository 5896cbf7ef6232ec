#include "daemon/rpc/caller.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/rpc/peer_names.h"

namespace coppice {

std::optional<int> DescriptorOf(absl::string_view connection) {
  int fd = -1;
  if (!absl::ConsumePrefix(&connection, "fd:") || !absl::SimpleAtoi(connection, &fd)) {
    return std::nullopt;
  }
  return fd;
}

Caller CallerOf(Peers& peers, const grpc::CallbackServerContext& context,
                absl::string_view connection) {
  Peer peer = peers.Identify(context);
  // Without the port, which each connection has anew.
  if (peer.user == kAnonymous) {
    peer.user = absl::StrCat(kAnonymous, " at ", connection.substr(0, connection.rfind(':')));
  }
  return {std::move(peer.user), peer.is_administrator};
}

}  // namespace coppice
