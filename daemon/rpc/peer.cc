#include "daemon/rpc/peer.h"

#include <memory>
#include <vector>

namespace coppice {

absl::StatusOr<Peer> Authorise(const grpc::CallbackServerContext& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return Peer{"unknown"};
  const std::vector<grpc::string_ref> identity = auth->GetPeerIdentity();
  if (identity.empty()) return Peer{"unknown"};
  return Peer{std::string(identity.front().data(), identity.front().size())};
}

}  // namespace coppice
