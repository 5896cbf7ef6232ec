// From sweeps to published views: reads the subnet, compares with what is published, and where
// something changed writes inventory and capabilities to the store, numbers the new snapshot and
// puts it into the tables.
//
//   SubnetPort --sweep--> same? --yes--> view with fresh sweep metadata, nothing written
//                           |no
//                 inventory --> Store --> promises of the granted trees
//                 capabilities --> Store --> view with version + 1 --> Tables
//
// Invariants: versions rise over restarts; a sweep that fails anywhere on this way leaves the
// published view as it is. Blocks; knows no jobs and no trees.
#ifndef COPPICE_DAEMON_MANAGER_TOPOLOGY_H_
#define COPPICE_DAEMON_MANAGER_TOPOLOGY_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/clock.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/manager/capability_rules.h"
#include "daemon/manager/event_log.h"
#include "daemon/manager/manager.h"
#include "daemon/manager/store_calls.h"
#include "daemon/manager/tables.h"
#include "daemon/manager/tree_promise.h"

namespace coppice {

// Thread-safe.
class Topology {
 public:
  using View = std::shared_ptr<const FabricView>;

  // `last_version`: the highest that the store knows. All pointers outlive this.
  Topology(StoreCalls* calls, EventLog* events, SubnetPort* port, const Clock* clock,
           Tables* tables, std::vector<CapabilityRule> rules, uint64_t last_version);

  // As Manager::Sweep.
  absl::StatusOr<View> Sweep();
  // Empty: the last sweep went well, or none was made.
  std::string last_error() const;

 private:
  using Promises = absl::flat_hash_map<std::shared_ptr<const TreeRecord>, TreePromise>;

  absl::StatusOr<View> SweepNow();
  absl::StatusOr<View> PublishRefreshed(const FabricView& old, SweepResult result);
  absl::StatusOr<View> PublishChanged(const View& old, SweepResult result);
  absl::Status WriteInventory(const View& old, const Fabric& fabric, absl::Time swept);
  Promises FindPromises(const FabricView& view);
  void Publish(const View& view, absl::Span<const EntryUse> uses, Promises& promises);
  void Note(const absl::Status& status);

  StoreCalls* const calls_;
  EventLog* const events_;
  SubnetPort* const port_;
  const Clock* const clock_;
  Tables* const tables_;
  const std::vector<CapabilityRule> rules_;

  // Of the one sweep under way, which owns them.
  uint64_t last_version_;
  absl::Time inventory_time_ = absl::InfinitePast();  // last_seen of what the store holds

  mutable std::mutex mu_;
  std::condition_variable swept_;
  // Guarded by mu_.
  bool sweeping_ = false;
  uint64_t sweeps_ = 0;  // that have ended
  absl::StatusOr<View> last_result_ = View();
  std::string last_error_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TOPOLOGY_H_
