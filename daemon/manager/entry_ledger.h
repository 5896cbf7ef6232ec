// Who holds how many entries in which switch.
#ifndef COPPICE_DAEMON_MANAGER_ENTRY_LEDGER_H_
#define COPPICE_DAEMON_MANAGER_ENTRY_LEDGER_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/tree/tree_plan.h"
#include "db/store.h"

namespace coppice {

// Who holds how many entries in which switch, in memory. Counts granted trees and, beside them,
// reservations: trees that are on their way to the store. Switches are kept by GUID, whether or not
// the present fabric has them: a granted tree keeps its entry while its switch is away. Not
// thread-safe; the manager's lock guards it.
class EntryLedger {
 public:
  // Sets the capabilities, as the store holds them, and the fabric whose indices Capacity and
  // Reserve speak. What is taken stays. O(switches + uses).
  void Rebase(const Fabric& fabric, absl::Span<const EntryUse> uses);
  // The same of one switch, which speaks for itself from now on: its word stays, also where it is
  // less than what trees take there, which the store's record is not.
  void SetCapability(const CapabilityRecord& capability);
  // A switch that speaks and is away has no entry for new trees; it keeps those that it gave.
  void SetAway(Guid guid, bool is_away);
  bool IsAway(Guid guid) const;
  // Before the first fabric: capabilities only.
  void SetCapabilities(absl::Span<const EntryUse> uses);

  // [switch] of the present fabric: what a planner may use.
  absl::Span<const SwitchCapacity> capacity() const { return capacity_; }

  // Takes one entry in each switch for a tree on its way; false, and nothing taken, if one has none
  // left. Every call that returns true is followed by one Settle or Cancel with the same switches.
  bool Reserve(absl::Span<const SwitchIndex> switches);
  // Reserve for many trees: all of them, or none and false.
  bool ReserveAll(absl::Span<const absl::Span<const SwitchIndex>> trees);
  // The tree on its way was granted: its reservation becomes its own. `came`: what TreesOf tells.
  void Settle(TreeId tree, absl::Span<const TreeSwitchRecord> switches, absl::Time came);
  // The way back: a granted tree ends, but its entries are not free until Cancel.
  void Unsettle(TreeId tree, absl::Span<const TreeSwitchRecord> switches);
  void Cancel(absl::Span<const TreeSwitchRecord> switches);

  // Room for trees that change places in one step: `more` entries in a switch beyond those that
  // they hold now. All or none, as Reserve; ends with Unclaim, whether or not they moved.
  struct Claim {
    Guid guid;
    uint32_t more = 0;
  };
  bool ClaimMore(absl::Span<const Claim> claims);
  void Unclaim(absl::Span<const Claim> claims);

  // A tree that an earlier run was granted: takes its entries whatever the capabilities say.
  void Restore(TreeId tree, absl::Span<const TreeSwitchRecord> switches, absl::Time came);
  // A granted tree gives its entries back.
  void Release(TreeId tree, absl::Span<const TreeSwitchRecord> switches);

  // What is free of the switch now; 0 while it is away.
  int64_t FreeOf(Guid guid) const;
  // Zeros for a switch that was never heard of.
  EntryUse Use(Guid guid) const;
  // A granted tree, and since when it has its entry.
  struct Holder {
    TreeId tree;
    absl::Time came;
  };
  // Without reservations, in the order in which they took their entries.
  absl::Span<const Holder> TreesOf(Guid guid) const;
  // Sum over all switches of the present fabric.
  uint64_t entries_total() const;
  uint64_t entries_reserved() const;  // of these, held by others
  // Sum over all switches, reservations included.
  uint64_t entries_taken() const { return entries_taken_; }

 private:
  static constexpr uint32_t kNoSwitch = 0xffffffff;
  struct Slot {
    CapabilityRecord capability;
    std::vector<Holder> trees;  // granted, in order of arrival
    uint32_t reserved = 0;      // trees on their way
    bool speaks = false, is_away = false;
    uint32_t index = kNoSwitch;  // in the present fabric
    uint32_t taken() const { return static_cast<uint32_t>(trees.size()) + reserved; }
  };

  Slot& SlotOf(Guid guid);
  Slot& SlotAt(SwitchIndex s) { return slots_[slot_of_switch_[s.value()]]; }
  void AddReserved(Slot& slot, int64_t more);
  static void Drop(Slot& slot, TreeId tree);
  void Publish(const Slot& slot);  // the slot's free entries, to capacity_

  std::vector<Slot> slots_;
  absl::flat_hash_map<Guid, uint32_t> by_guid_;  // -> slots_
  std::vector<SwitchCapacity> capacity_;         // [switch]
  std::vector<uint32_t> slot_of_switch_;         // [switch] -> slots_
  uint64_t entries_taken_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_ENTRY_LEDGER_H_
