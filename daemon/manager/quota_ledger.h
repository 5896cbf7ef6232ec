// Who holds how much of what can be used up, and may.
#ifndef COPPICE_DAEMON_MANAGER_QUOTA_LEDGER_H_
#define COPPICE_DAEMON_MANAGER_QUOTA_LEDGER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/manager/accounts.h"
#include "daemon/manager/fabric_view.h"
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

// For whom something is held.
struct Payer {
  std::string user;
  bool is_exempt = false;       // an administrator's
  std::string account = {};     // empty: none
  PartitionNum partition = {};  // 0: none
};

// Who pays for a job, a placement or a pattern.
template <class Record>
Payer PayerOf(const Record& record) {
  Payer payer{record.owner, record.by_administrator, record.account};
  if constexpr (requires { record.partition; }) payer.partition = record.partition;
  return payer;
}

// Who may have a limit.
struct QuotaHolderName {
  QuotaHolder kind = QuotaHolder::kUser;
  std::string name;
  friend bool operator==(const QuotaHolderName&, const QuotaHolderName&) = default;
  friend auto operator<=>(const QuotaHolderName&, const QuotaHolderName&) = default;
};
std::string ToString(const QuotaHolderName& holder);  // "account:physics"

// One limit of one holder.
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

// The one place where quotas are judged. What somebody holds counts against him, against his
// account and those above it, and against their tenant; none of them takes more than its limit.
// That is the row that an administrator put, else, of users, the configuration's; a percentage is
// of the whole, at least 1. Ordinary users together never take the last so many percent of a whole.
// What administrators take is counted and never refused.
//
// Tenants share entries by weight. As long as one that has less than its share was refused a tree
// for want of entries not long ago, the others take no more of those beyond theirs; else all is
// anybody's.
//
// Thread-safe. Its lock is a leaf: nothing else is taken under it.
class QuotaLedger {
 public:
  void Configure(const QuotaOptions& options);
  // How much there is of entries, nodes or bytes of patterns.
  void SetWhole(Quota quota, int64_t whole);
  void SetRows(absl::Span<const QuotaRecord> rows);
  // From now on these pay; what is held already is theirs, too. Never null.
  void SetAccounts(std::shared_ptr<const Accounts> accounts);
  std::shared_ptr<const Accounts> accounts() const;
  // "": it pays for none.
  std::string TenantOf(const Payer& payer) const {
    return accounts()->TenantOf(payer.account, payer.partition);
  }
  // Of a caller, on his default account.
  Payer PayerOf(const std::string& user, bool is_administrator) const;
  void SetRow(const QuotaRecord& row, bool drop);

  // All of it counts from now on, also the trees' entries by switch, or nothing does:
  // RESOURCE_EXHAUSTED, naming limit, use and holder in words and in kHoldersPayload; ABORTED: one
  // of the switches has no entry left for the payer, as Restrict would tell a new plan.
  using Entries = absl::Span<const TreeSwitchRecord>;
  absl::Status Take(const Payer& payer, const QuotaAmounts& amounts, Entries entries = {});
  // What Take would say.
  absl::Status Check(const Payer& payer, const QuotaAmounts& amounts) const;
  // What it would say of the limits of the payer's own levels alone, whatever others hold.
  absl::Status CheckLevels(const Payer& payer, const QuotaAmounts& amounts) const;
  // The most of each that Take would give by itself; QuotaLimit::kNone: any.
  QuotaAmounts Left(const Payer& payer) const;
  void Count(const Payer& payer, const QuotaAmounts& amounts, Entries entries = {});
  // What Take or Count counted.
  void Give(const Payer& payer, const QuotaAmounts& amounts, Entries entries = {});
  // Entries of the switch that the tenant's trees have, or are about to.
  int64_t EntriesOf(absl::string_view tenant, Guid guid) const;
  // Takes from `capacity`, [switch] of the fabric, the entries that the payer may not have for lack
  // of quota. Returns those that have none left for it alone, ascending. O(switches) where there is
  // such a limit.
  std::vector<SwitchIndex> Restrict(const Payer& payer, const Fabric& fabric,
                                    absl::Span<SwitchCapacity> capacity) const;

  // --- Shares of tenants ---
  // How long who was refused counts as one who asks.
  static constexpr absl::Duration kAsking = absl::Minutes(1);
  // The payer's tenant lacks entries of these switches; `now` by Clock::Monotonic.
  void NoteAsking(const Payer& payer, absl::Span<const RefusedSwitch> full, absl::Duration now);
  // RESOURCE_EXHAUSTED: some of the entries are beyond the share of the payer's tenant, and another
  // that is below its own asks for them; `contested` gets the switches that it asks for.
  absl::Status CheckShare(const Payer& payer, Entries entries, std::vector<Guid>& contested) const;
  // Entries of switches that reservations keep for tenants now, which are theirs beyond their
  // shares.
  using Reserved = absl::flat_hash_map<std::string, absl::flat_hash_map<Guid, int64_t>>;
  void SetReserved(Reserved entries);

  // Whose turn a user's work is, on his default account, and how much of all turns that has.
  struct Turn {
    std::string tenant;  // "": of all who have none
    int64_t weight = 1;
  };
  Turn TurnOf(const std::string& user) const;

  // --- The planner's time ---
  // What was spent an hour ago counts by 1/e.
  static constexpr absl::Duration kPlannerMemory = absl::Hours(1);
  // RESOURCE_EXHAUSTED: a level of the payer has spent what it may; `now` by Clock::Monotonic.
  absl::Status CheckPlanner(const Payer& payer, absl::Duration now);
  void SpendPlanner(const Payer& payer, absl::Duration spent, absl::Duration now);

  // RESOURCE_EXHAUSTED: longer than the user may have; `what` begins the message: "lease".
  absl::Status CheckLease(const Payer& payer, absl::Duration lease, absl::string_view what) const;
  // The longest that he may have; infinite: any.
  absl::Duration LongestLease(const Payer& payer) const;
  // Of the ranks of the user's ended jobs; INT64_MAX: no bound.
  int64_t KeptBytes(const std::string& user) const;
  int64_t AllKeptBytes() const;

  // [Quota], of a holder that need not be known.
  std::vector<QuotaStanding> StandingOf(const QuotaHolderName& holder) const;
  // Those who hold something or have limits of their own: users, accounts, tenants, by name.
  std::vector<QuotaHolderName> Holders() const;

 private:
  struct Use {
    QuotaAmounts ordinary, exempt;
    bool IsNone() const { return ordinary == QuotaAmounts() && exempt == QuotaAmounts(); }
    absl::flat_hash_map<Guid, int64_t> by_switch;  // entries, exempt ones as well
    void Add(const QuotaAmounts& amounts, int sign, bool is_exempt);
    void AddEntries(Guid guid, int64_t more);
    int64_t EntriesOf(Guid guid) const;
  };
  struct Spent {
    double seconds = 0;  // as of `at`
    absl::Duration at;
    double By(absl::Duration now) const;
  };
  struct Asking {
    absl::Duration until;
    absl::flat_hash_set<Guid> switches;  // that were full for it
  };
  struct Level {
    QuotaHolder kind = QuotaHolder::kUser;
    absl::string_view name;
  };
  using Levels = absl::InlinedVector<Level, 4>;
  // Who pays what: with what the levels are summed up anew when accounts change.
  using Leaf = std::tuple<std::string, std::string, PartitionNum>;  // user, account, partition
  using Limits = std::array<std::optional<int64_t>, kQuotas>;       // [Quota] that are its own
  static constexpr size_t kKinds = 4;                               // QuotaHolder starts at 1
  template <class Value>
  using PerHolder = std::array<absl::flat_hash_map<std::string, Value>, kKinds>;

  // All with mu_ held. From below: the user, his account and those above it, their tenant, whose
  // name may be in `tenant`.
  Levels LevelsOf(absl::string_view user, absl::string_view account, PartitionNum partition,
                  std::string& tenant) const;
  const Use* UseOf(const Level& level) const;
  const absl::flat_hash_map<std::string, Use>& UsesOf(QuotaHolder kind) const {
    return uses_[static_cast<size_t>(kind)];
  }
  int64_t OrdinaryUse(const Level& level, Quota quota) const;
  std::optional<int64_t> OwnLimit(const Level& level, Quota quota) const;
  int64_t LimitOf(const Level& level, Quota quota) const;
  int64_t ForUsers(Quota quota) const;
  absl::Status Judge(const Payer& payer, const QuotaAmounts& amounts, Entries entries) const;
  absl::Status JudgeLevels(const Levels& levels, const Payer& payer,
                           const QuotaAmounts& amounts) const;
  absl::Status JudgeEntries(const Levels& levels, Entries entries) const;
  absl::Status OverOwn(const Level& level, const Payer& payer, Quota quota, int64_t more) const;
  absl::Status Over(const Level& level, const Payer& payer, Quota quota, int64_t used,
                    absl::string_view asked) const;
  int64_t WeightOf(absl::string_view tenant) const;
  // What a tenant has reserved of the switch and does not hold yet.
  int64_t ReservedOf(absl::string_view tenant, Guid guid) const;
  // Of the entries of all switches, among tenants that hold some or ask.
  int64_t ShareOf(absl::string_view tenant) const;
  // By ordinary users; "": for no tenant.
  int64_t EntriesHeldBy(absl::string_view tenant) const;
  absl::Status OverShare(Quota quota, int64_t used, int64_t more, int64_t limit) const;
  Use& UseAt(const Level& level);
  void ForgetIfNone(const Level& level);
  void Add(const Payer& payer, const QuotaAmounts& amounts, Entries entries, int sign);

  mutable std::mutex mu_;
  // Guarded by mu_.
  QuotaOptions options_;
  QuotaAmounts whole_ = Unbounded();
  std::shared_ptr<const Accounts> accounts_ = std::make_shared<Accounts>();
  PerHolder<Limits> limits_;                         // [QuotaHolder] of whoever has one of his own
  PerHolder<Use> uses_;                              // [QuotaHolder] of whoever holds something
  absl::flat_hash_map<Leaf, Use> leaves_;            // the same, apart
  PerHolder<Spent> spent_;                           // [QuotaHolder] of the planner's time
  absl::flat_hash_map<std::string, Asking> asking_;  // tenants
  Reserved reserved_;
  absl::Duration now_;           // the latest that was told
  QuotaAmounts ordinary_, all_;  // the sums
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_QUOTA_LEDGER_H_
