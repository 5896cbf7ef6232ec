#include "daemon/manager/accounts.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/text/option_words.h"
#include "proto/text/partition_number.h"

namespace coppice {

std::string TenantName(absl::string_view text) {
  const auto number =
      absl::StartsWith(text, "0x") ? ParsePartition(std::string(text)) : std::nullopt;
  return number ? ToString(PartitionNum(static_cast<uint16_t>(*number))) : std::string(text);
}

Accounts::Accounts(std::vector<AccountRecord> accounts, std::vector<AccountUserRecord> users)
    : accounts_(std::move(accounts)), users_(std::move(users)) {
  std::sort(accounts_.begin(), accounts_.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::sort(users_.begin(), users_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.user, a.account) < std::tie(b.user, b.account);
  });
  for (size_t i = 0; i < accounts_.size(); ++i) by_name_.emplace(accounts_[i].name, i);
}

const AccountRecord* Accounts::Find(absl::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &accounts_[found->second];
}

std::vector<absl::string_view> Accounts::ChainOf(absl::string_view account) const {
  std::vector<absl::string_view> chain;
  for (const AccountRecord* at = Find(account); at != nullptr; at = Find(at->parent)) {
    chain.push_back(at->name);
  }
  return chain;
}

absl::string_view Accounts::TenantOf(absl::string_view account) const {
  for (const AccountRecord* at = Find(account); at != nullptr; at = Find(at->parent)) {
    if (!at->tenant.empty()) return at->tenant;
  }
  return "";
}

std::string Accounts::TenantOf(absl::string_view account, PartitionNum partition) const {
  const absl::string_view tenant = TenantOf(account);
  if (!tenant.empty()) return std::string(tenant);
  if (partition == PartitionNum() || partition == kDefaultPartition) return "";
  return ToString(partition);
}

absl::StatusOr<PartitionNum> Accounts::PartitionFor(absl::string_view account,
                                                    PartitionNum wanted) const {
  const absl::string_view tenant = TenantOf(account);
  const auto number =
      absl::StartsWith(tenant, "0x") ? ParsePartition(std::string(tenant)) : std::nullopt;
  if (!number) return wanted;
  const PartitionNum own(static_cast<uint16_t>(*number));
  if (wanted == PartitionNum() || wanted == own) return own;
  return absl::FailedPreconditionError(absl::StrCat(
      "partition ", ToString(wanted), ": account ", account, " is of the tenant of partition ",
      ToString(own), "; ask for that, for none, or on another account"));
}

absl::Span<const AccountUserRecord> Accounts::OfUser(absl::string_view user) const {
  const auto [first, last] =
      std::equal_range(users_.begin(), users_.end(), AccountUserRecord{std::string(user), ""},
                       [](const auto& a, const auto& b) { return a.user < b.user; });
  return absl::MakeConstSpan(users_).subspan(static_cast<size_t>(first - users_.begin()),
                                             static_cast<size_t>(last - first));
}

absl::StatusOr<std::string> Accounts::Choose(absl::string_view user, absl::string_view wanted,
                                             bool may_name_any) const {
  const absl::Span<const AccountUserRecord> own = OfUser(user);
  if (wanted.empty()) {
    const auto found =
        std::find_if(own.begin(), own.end(), [](const auto& one) { return one.is_default; });
    return found == own.end() ? std::string() : found->account;
  }
  if (may_name_any || accounts_.empty()) return std::string(wanted);
  if (Find(wanted) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("account: no account is named ", wanted,
                     "; coppicectl account list shows those there are"));
  }
  const bool is_in =
      std::any_of(own.begin(), own.end(), [&](const auto& one) { return one.account == wanted; });
  if (is_in) return std::string(wanted);
  std::vector<std::string> names;
  for (const AccountUserRecord& one : own) names.push_back(one.account);
  return absl::PermissionDeniedError(
      absl::StrCat("account: ", user, " is not in account ", wanted, " but in ",
                   names.empty() ? "none" : absl::StrJoin(names, ", "),
                   "; name one of these, or ask an administrator"));
}

}  // namespace coppice
