// Who holds how much of what can be used up, and whether he may have more: the one place where
// quotas are judged. Every grant asks Take under whatever lock decides on it, and everything that
// is given back comes through Give; what an earlier run granted is entered by Count.
//
//   limit of a holder   the row that an administrator put (db/job_records.h), else the
//                       configuration's; a percentage is of the whole, at least 1
//   share left          ordinary users together never take the last so many percent of a whole
//   administrators      what they take is counted and never refused here
//
// A grant counts against its user. Accounts and tenants, when there are any, are further holders of
// the same grant: rows for them can be kept already.
#ifndef COPPICE_DAEMON_MANAGER_QUOTA_LEDGER_H_
#define COPPICE_DAEMON_MANAGER_QUOTA_LEDGER_H_

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
#include "daemon/manager/options.h"
#include "db/store.h"

namespace coppice {

struct QuotaAmounts {
  int64_t& operator[](Quota quota) { return of[static_cast<size_t>(quota)]; }
  int64_t operator[](Quota quota) const { return of[static_cast<size_t>(quota)]; }
  friend bool operator==(const QuotaAmounts&, const QuotaAmounts&) = default;
  std::array<int64_t, kCountedQuotas> of = {};
};

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
  static constexpr std::array<int64_t, kCountedQuotas> Unbounded() {
    std::array<int64_t, kCountedQuotas> wholes{};
    wholes.fill(QuotaLimit::kNone);
    return wholes;
  }
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
  std::array<int64_t, kCountedQuotas> whole_ = Unbounded();  // [Quota]
  std::map<std::pair<std::string, Quota>, int64_t> rows_;    // of users
  absl::flat_hash_map<std::string, Use> uses_;               // of whoever holds something
  QuotaAmounts ordinary_, all_;                              // the sums
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_QUOTA_LEDGER_H_
