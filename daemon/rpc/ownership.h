// Whose a job or a tree is, against who calls.
#ifndef COPPICE_DAEMON_RPC_OWNERSHIP_H_
#define COPPICE_DAEMON_RPC_OWNERSHIP_H_

#include "absl/status/status.h"
#include "daemon/manager/manager.h"
#include "daemon/rpc/peer.h"

namespace coppice {

// PERMISSION_DENIED, naming the owner: the job, or the job of the tree, is another's and the peer
// is no administrator. OK for what does not exist: whoever is asked next says so. Cheap, except for
// a job that is over: that asks the store.
absl::Status MayChangeJob(Manager& manager, const Peers& peers, const Peer& peer, JobId id);
absl::Status MayChangeTree(const Manager& manager, const Peers& peers, const Peer& peer, TreeId id);

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_OWNERSHIP_H_
