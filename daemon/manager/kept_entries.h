// What reservations keep of switches and nodes at one time: others may have only what is beyond.
//
//   free entries of a switch   [ kept for a | kept for b | anybody's ]
//   kept for a                 what a reserved, less what a's trees have there already
//
// What a reservation lends is anybody's, until its tenant asks for it: then trees that were granted
// after it, the newest first, are planned anew to do without (Tables::CallBack).
#ifndef COPPICE_DAEMON_MANAGER_KEPT_ENTRIES_H_
#define COPPICE_DAEMON_MANAGER_KEPT_ENTRIES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/manager/quota_ledger.h"
#include "daemon/tree/tree_plan.h"
#include "db/store.h"

namespace coppice {

// How many entries of a switch each tenant has, or, with `more`, will have once a repair is done.
class HeldEntries {
 public:
  using Changes = absl::flat_hash_map<std::pair<std::string, Guid>, int64_t>;
  HeldEntries(const QuotaLedger& quotas, const Changes* more = nullptr)
      : quotas_(quotas), more_(more) {}
  int64_t Of(const std::string& tenant, Guid guid) const;

 private:
  const QuotaLedger& quotas_;
  const Changes* const more_;
};

// Immutable. Of reservations that have begun and not ended.
class KeptEntries {
 public:
  KeptEntries() = default;
  // At `now`; `reservations` are all that there are.
  KeptEntries(absl::Span<const ReservationRecord> reservations, absl::Time now);

  // What one tenant has of a switch or a node, by all its reservations.
  struct Share {
    std::string tenant;
    int64_t kept = 0, lent = 0;  // entries
    ReservationId reservation;   // one of them: that ends first
    absl::Time created;          // of the first that was
    absl::Time until;            // the first end
  };
  const absl::flat_hash_map<Guid, std::vector<Share>>& switches() const { return switches_; }
  const absl::flat_hash_map<std::string, std::vector<Share>>& nodes() const { return nodes_; }

  // Who asks: a grant may borrow what is lent, and take back what its own tenant has lent; a repair
  // may borrow, but not if what it had was taken back.
  enum class Asker : uint8_t { kGrant, kRepair, kCalledBack };
  // Free entries of the switch that are for tenants other than this one.
  int64_t KeptFrom(absl::string_view tenant, Guid guid, const HeldEntries& held, Asker asker) const;
  // The tenant's of that switch; null: it has none there.
  const Share* ShareOf(absl::string_view tenant, Guid guid) const;
  // Entries of the switch that the share's tenant has reserved and does not hold yet.
  static int64_t Unused(const Share& share, Guid guid, const HeldEntries& held);

  // Of so many free entries of the switch those that the tenant may have: less what is kept from
  // it, and, for a grant, at least what it has reserved, which others may have been lent.
  uint32_t FreeFor(absl::string_view tenant, Guid guid, const HeldEntries& held, Asker asker,
                   uint32_t free) const;
  // The same of `capacity`, [switch] of the fabric. Returns those of which the tenant has none for
  // that reason, ascending.
  std::vector<SwitchIndex> Apply(absl::string_view tenant, const Fabric& fabric,
                                 const HeldEntries& held, Asker asker,
                                 absl::Span<SwitchCapacity> capacity) const;
  // "; of 2 switches all free entries are kept, of the first by reservation 3 of tenant ...", which
  // is the one of another tenant that ends first; "" without switches.
  std::string WordsOf(absl::string_view tenant, const Fabric& fabric,
                      absl::Span<const SwitchIndex> without) const;

 private:
  absl::flat_hash_map<Guid, std::vector<Share>> switches_;
  absl::flat_hash_map<std::string, std::vector<Share>> nodes_;
};

// "3 of tenant physics until 2026-12-01T08:00:00+00:00"
std::string ToString(const KeptEntries::Share& share);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_KEPT_ENTRIES_H_
