#include "daemon/rpc/caller.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/rpc/client_network.h"
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
  if (peer.user == kAnonymous) {
    return {absl::StrCat(kAnonymous, " at ", NetworkOf(connection)), kAnonymous, false, true};
  }
  if (peer.user == peer.caller) return {std::move(peer.user), "", peer.is_administrator, false};
  return {std::move(peer.user), std::move(peer.caller), peer.is_administrator, peer.is_by_agent};
}

}  // namespace coppice
