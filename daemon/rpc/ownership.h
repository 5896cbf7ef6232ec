// Whose a job or a tree is, against who calls.
#ifndef COPPICE_DAEMON_RPC_OWNERSHIP_H_
#define COPPICE_DAEMON_RPC_OWNERSHIP_H_

#include <grpcpp/server_context.h>

#include "absl/status/status.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/peer.h"

namespace coppice {

// PERMISSION_DENIED, naming the owner: the job, or the job of the tree, is another's and the caller
// is no administrator. OK for what does not exist: whoever is asked next says so. Cheap, except for
// a job that is over: that asks the store.
absl::Status MayChangeJob(Manager& manager, Peers& peers,
                          const grpc::CallbackServerContext& context, JobId id);
absl::Status MayChangeTree(const Manager& manager, Peers& peers,
                           const grpc::CallbackServerContext& context, TreeId id);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_OWNERSHIP_H_
