#include "daemon/rpc/ownership.h"

namespace coppice {

absl::Status MayChangeJob(Manager& manager, const Peers& peers, const Peer& peer, JobId id) {
  if (peer.is_administrator) return absl::OkStatus();
  const absl::StatusOr<JobView> job = manager.GetJob(id);
  return job.ok() ? peers.MayChange(peer, *job->record) : absl::OkStatus();
}

absl::Status MayChangeTree(const Manager& manager, const Peers& peers, const Peer& peer,
                           TreeId id) {
  if (peer.is_administrator) return absl::OkStatus();
  const absl::StatusOr<TreeView> tree = manager.GetTree(id);
  return tree.ok() ? peers.MayChange(peer, *tree->job) : absl::OkStatus();
}

}  // namespace coppice
