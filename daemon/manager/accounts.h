// Who pays: users are in accounts, accounts within others, and a tree of accounts is a tenant's.
//
//   tenant  "science"                      of all accounts below the one that names it
//             physics                      account
//               atlas     ada*, eve        account within it; * their default
//   tenant  "0x0003"                       named as a partition: its accounts' jobs are in that
//
// A job has the account that it names, or its user's default one. Its tenant is the account's;
// where no account says, its partition's, but the default partition is nobody's.
#ifndef COPPICE_DAEMON_MANAGER_ACCOUNTS_H_
#define COPPICE_DAEMON_MANAGER_ACCOUNTS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/fabric/partitions.h"
#include "db/store.h"

namespace coppice {

// A tenant's name as it is kept: one that names a partition, "0x1" or "0x8001", as "0x0001".
std::string TenantName(absl::string_view text);

// Immutable.
class Accounts {
 public:
  Accounts() = default;
  // As PutAccounts allows them.
  Accounts(std::vector<AccountRecord> accounts, std::vector<AccountUserRecord> users);

  absl::Span<const AccountRecord> accounts() const { return accounts_; }  // by name
  absl::Span<const AccountUserRecord> users() const { return users_; }    // by user and account
  // Null: there is none of that name.
  const AccountRecord* Find(absl::string_view name) const;
  // The account and those above it, from below; empty: there is none of that name.
  std::vector<absl::string_view> ChainOf(absl::string_view account) const;
  // "": it has none.
  absl::string_view TenantOf(absl::string_view account) const;
  // The tenant of what this account holds in that partition.
  std::string TenantOf(absl::string_view account, PartitionNum partition) const;
  // The partition of what is asked for on this account: `wanted` or, if that is 0, the one that its
  // tenant is named as; 0: none. FAILED_PRECONDITION: they are two.
  absl::StatusOr<PartitionNum> PartitionFor(absl::string_view account, PartitionNum wanted) const;

  // The account that pays: `wanted` or, if that is empty, the user's default one, empty if he has
  // none. `may_name_any`: an administrator, or a scheduler for its user, who knows it before an
  // import tells of it; so may everybody as long as no account is known. INVALID_ARGUMENT: it is
  // not known; PERMISSION_DENIED: the user is not in it.
  absl::StatusOr<std::string> Choose(absl::string_view user, absl::string_view wanted,
                                     bool may_name_any) const;

 private:
  absl::Span<const AccountUserRecord> OfUser(absl::string_view user) const;

  std::vector<AccountRecord> accounts_;
  std::vector<AccountUserRecord> users_;
  absl::flat_hash_map<std::string, size_t> by_name_;  // -> accounts_
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_ACCOUNTS_H_
