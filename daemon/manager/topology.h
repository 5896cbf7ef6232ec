// From full sweeps to published views: reads the subnet, compares with what is published, and where
// something changed writes inventory and capabilities to the store, numbers the new snapshot and
// puts it into the tables. What differs is told as events.
//
//   SubnetPort --sweep--> same? --yes--> view with fresh sweep metadata, nothing written
//                           |no
//                 inventory --> Store --> promises of the granted trees
//                 capabilities --> Store --> view with version + 1 --> Tables
//
// Invariants: versions rise over restarts; a sweep that fails anywhere on this way leaves the
// published view as it is. Blocks; knows no jobs and no trees, and not when it is called.
#ifndef COPPICE_DAEMON_MANAGER_TOPOLOGY_H_
#define COPPICE_DAEMON_MANAGER_TOPOLOGY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/manager/fabric_events.h"
#include "daemon/manager/fabric_view.h"
#include "daemon/manager/inventory.h"
#include "daemon/manager/load_keeper.h"
#include "daemon/manager/promised_load.h"
#include "daemon/manager/tables.h"

namespace coppice {

// One call at a time, but for SetRules.
class Topology : private UseCase {
 public:
  using View = std::shared_ptr<const FabricView>;

  // `last_version`: the highest that the store knows. All pointers outlive this.
  Topology(const UseCase& with, SubnetPort* port, LoadKeeper* load, uint64_t last_version)
      : UseCase(with),
        port_(port),
        load_(load),
        rules_(options_->capability_rules),
        last_version_(last_version) {}

  struct Outcome {
    View view;  // never null
    bool fabric_changed = false, tables_changed = false, partitions_changed = false;
    bool are_tables_kept = false;  // as SweepResult
  };
  // Errors: as SubnetPort::Sweep and Store.
  // In haste the forwarding tables are not read, where there are earlier ones: soon enough, another
  // sweep must.
  // `between`: as SweepOptions; it may call DropLinks.
  absl::StatusOr<Outcome> Sweep(bool in_haste, std::function<void()> between = nullptr);
  // Publishes the fabric without those of its links whose ends say that they are down, on the
  // tables that it has; the store hears of the version only. False: there are none in it. Errors:
  // the store's, and nothing has changed. O(fabric), a fraction of a full sweep.
  absl::StatusOr<bool> DropLinks(absl::Span<const LinkChange> changes);
  std::vector<DownLink> down_links() const { return down_links_.All(); }
  // After DropLinks, once what is urgent is done: the store learns when the view before it was seen
  // last, and what is published now. Errors: the store's.
  absl::Status KeepDropped(const FabricView& before);
  // Puts other rules in force, on the published fabric at once. On an error, the store's, the old
  // ones stay. Any thread, also while Sweep runs.
  absl::Status SetRules(std::vector<CapabilityRule> rules);
  // A switch says what it can: that holds over the rules, at once and from sweep to sweep, as long
  // as the daemon runs. Errors: the store's, and nothing has changed. Any thread.
  absl::Status SetSpoken(const CapabilityRecord& capability);
  // Tells of what flapped and is steady again.
  void EndFlapping();

 private:
  using Promises = absl::flat_hash_map<std::shared_ptr<const TreeRecord>, TreePromise>;

  // With rules_mu_ held: one record per switch, in index order.
  std::vector<CapabilityRecord> CapabilitiesOf(const Fabric& fabric,
                                               const std::vector<CapabilityRule>& rules) const;
  View PublishRefreshed(const View& old, SweepResult result);
  absl::StatusOr<View> PublishChanged(const View& old, SweepResult result, bool are_routes_old);
  void FillMetadata(FabricView& view, const FabricView* old, const Fabric& fabric,
                    SweepResult& result) const;
  void TellChanges(const FabricView* old, const FabricView& now);
  absl::Status WriteInventory(const FabricView* old, const Fabric& fabric, absl::Time swept);
  Promises FindPromises(const FabricView& view);
  // `uses` null: the switches, and what they can, are those of the view before.
  void Publish(const View& view, const std::vector<EntryUse>* uses, Promises& promises);

  SubnetPort* const port_;
  LoadKeeper* const load_;
  // Held while capabilities go to the store and into the tables; taken before the tables' lock.
  std::mutex rules_mu_;
  // Guarded by rules_mu_.
  std::vector<CapabilityRule> rules_;
  absl::flat_hash_map<Guid, CapabilityRecord> spoken_;  // of switches that speak

  uint64_t last_version_;
  absl::Time inventory_time_ = absl::InfinitePast();  // last_seen of what the store holds

  FlapFilter flaps_;
  DownLinks down_links_;
  std::vector<LinkChange> dropped_;  // since the full sweep under way began
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TOPOLOGY_H_
