// Who holds how much of what can be used up: entries of each switch, and quotas of each user.
#ifndef COPPICE_DAEMON_MANAGER_LEDGERS_H_
#define COPPICE_DAEMON_MANAGER_LEDGERS_H_

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/manager/options.h"
#include "daemon/tree/tree_plan.h"
#include "db/store.h"

namespace coppice {

struct QuotaAmounts {
  int64_t& operator[](Quota quota) { return of[static_cast<size_t>(quota)]; }
  int64_t operator[](Quota quota) const { return of[static_cast<size_t>(quota)]; }
  friend bool operator==(const QuotaAmounts&, const QuotaAmounts&) = default;
  std::array<int64_t, kCountedQuotas> of = {};
};

inline QuotaAmounts Unbounded() {
  QuotaAmounts amounts;
  amounts.of.fill(QuotaLimit::kNone);
  return amounts;
}

// On whose account something is.
struct QuotaAccount {
  std::string user;
  bool is_exempt = false;  // an administrator's
};

// One limit of one user.
struct QuotaStanding {
  Quota quota = Quota::kEntries;
  int64_t limit = QuotaLimit::kNone;
  bool is_own = false;                              // an administrator gave it
  int64_t used = 0;                                 // 0 where there is no use
  int64_t all_used = 0, whole = QuotaLimit::kNone;  // of all users
  int64_t for_users = QuotaLimit::kNone;            // that ordinary users together may have
};

// Lines of kHoldersPayload, with how many each holds: the first few, most first.
void SetHolders(std::vector<std::pair<int64_t, std::string>> lines, absl::Status& status);

// The one place where quotas are judged. The limit of a user is the row that an administrator put,
// else the configuration's; a percentage is of the whole, at least 1. Ordinary users together never
// take the last so many percent of a whole. What administrators take is counted and never refused.
//
// Thread-safe. Its lock is a leaf: nothing else is taken under it.
class QuotaLedger {
 public:
  void Configure(const QuotaOptions& options);
  // How much there is of entries, nodes or bytes of patterns.
  void SetWhole(Quota quota, int64_t whole);
  void SetRows(absl::Span<const QuotaRecord> rows);
  void SetRow(const QuotaRecord& row, bool drop);

  // All of it counts from now on, or RESOURCE_EXHAUSTED, naming limit, use and holder in words and
  // in kHoldersPayload, and nothing does.
  absl::Status Take(const QuotaAccount& account, const QuotaAmounts& amounts);
  // What Take would say.
  absl::Status Check(const QuotaAccount& account, const QuotaAmounts& amounts) const;
  // The most of each that Take would give by itself; QuotaLimit::kNone: any.
  QuotaAmounts Left(const QuotaAccount& account) const;
  void Count(const QuotaAccount& account, const QuotaAmounts& amounts);
  // What Take or Count counted.
  void Give(const QuotaAccount& account, const QuotaAmounts& amounts);

  // RESOURCE_EXHAUSTED: longer than the user may have; `what` begins the message: "lease".
  absl::Status CheckLease(const QuotaAccount& account, absl::Duration lease,
                          absl::string_view what) const;
  // The longest that he may have; infinite: any.
  absl::Duration LongestLease(const QuotaAccount& account) const;
  // Of the ranks of the user's ended jobs; INT64_MAX: no bound.
  int64_t KeptBytes(const std::string& user) const;
  int64_t AllKeptBytes() const;

  // [Quota], of a user who need not be known.
  std::vector<QuotaStanding> StandingOf(const std::string& user) const;
  // Those who hold something or have limits of their own, by name.
  std::vector<std::string> Users() const;

 private:
  struct Use {
    QuotaAmounts ordinary, exempt;
  };
  // All with mu_ held.
  int64_t LimitOf(const std::string& user, Quota quota) const;
  bool HasOwn(const std::string& user, Quota quota) const;
  int64_t ForUsers(Quota quota) const;
  absl::Status Judge(const QuotaAccount& account, const QuotaAmounts& amounts) const;
  absl::Status OverOwn(const std::string& user, Quota quota, int64_t used, int64_t more,
                       int64_t limit) const;
  absl::Status OverShare(Quota quota, int64_t used, int64_t more, int64_t limit) const;
  void Add(const QuotaAccount& account, const QuotaAmounts& amounts, int sign);

  mutable std::mutex mu_;
  // Guarded by mu_.
  QuotaOptions options_;
  QuotaAmounts whole_ = Unbounded();
  std::map<std::pair<std::string, Quota>, int64_t> rows_;  // of users
  absl::flat_hash_map<std::string, Use> uses_;             // of whoever holds something
  QuotaAmounts ordinary_, all_;                            // the sums
};

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
  // The tree on its way was granted: its reservation becomes its own.
  void Settle(TreeId tree, absl::Span<const TreeSwitchRecord> switches);
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
  void Restore(TreeId tree, absl::Span<const TreeSwitchRecord> switches);
  // A granted tree gives its entries back.
  void Release(TreeId tree, absl::Span<const TreeSwitchRecord> switches);

  // Zeros for a switch that was never heard of.
  EntryUse Use(Guid guid) const;
  // Ascending; without reservations.
  std::vector<TreeId> TreesOf(Guid guid) const;
  // Sum over all switches of the present fabric.
  uint64_t entries_total() const;
  uint64_t entries_reserved() const;  // of these, held by others
  // Sum over all switches, reservations included.
  uint64_t entries_taken() const { return entries_taken_; }

 private:
  static constexpr uint32_t kNoSwitch = 0xffffffff;
  struct Slot {
    CapabilityRecord capability;
    std::vector<TreeId> trees;  // granted, ascending
    uint32_t reserved = 0;      // trees on their way
    bool speaks = false, is_away = false;
    uint32_t index = kNoSwitch;  // in the present fabric
    uint32_t taken() const { return static_cast<uint32_t>(trees.size()) + reserved; }
  };

  Slot& SlotOf(Guid guid);
  Slot& SlotAt(SwitchIndex s) { return slots_[slot_of_switch_[s.value()]]; }
  void AddReserved(Slot& slot, int64_t more);
  void Publish(const Slot& slot);  // the slot's free entries, to capacity_

  std::vector<Slot> slots_;
  absl::flat_hash_map<Guid, uint32_t> by_guid_;  // -> slots_
  std::vector<SwitchCapacity> capacity_;         // [switch]
  std::vector<uint32_t> slot_of_switch_;         // [switch] -> slots_
  uint64_t entries_taken_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LEDGERS_H_
