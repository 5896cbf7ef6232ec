#include "daemon/manager/quota_ledger.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/placement/placement_view.h"

namespace coppice {
namespace {

constexpr size_t kMaxTold = 10;

const QuotaWords& WordsOf(Quota quota) { return kQuotaWords[static_cast<size_t>(quota)]; }
Quota Counted(size_t i) { return static_cast<Quota>(i); }
size_t At(QuotaHolder kind) { return static_cast<size_t>(kind); }

int64_t Share(int64_t whole, int64_t percent) {
  return whole == QuotaLimit::kNone ? whole : whole / 100 * percent + whole % 100 * percent / 100;
}

}  // namespace

std::string ToString(const QuotaHolderName& holder) {
  constexpr const char* kKinds[] = {"", "user:", "account:", "tenant:"};
  return absl::StrCat(kKinds[At(holder.kind)], holder.name);
}

void SetHolders(std::vector<std::pair<int64_t, std::string>> lines, absl::Status& status) {
  std::sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  if (lines.size() > kMaxTold) lines.resize(kMaxTold);
  status.SetPayload(kHoldersPayload,
                    absl::Cord(absl::StrJoin(lines, "\n", [](std::string* out, const auto& line) {
                      absl::StrAppend(out, line.second);
                    })));
}

void QuotaLedger::Configure(const QuotaOptions& options) {
  std::lock_guard lock(mu_);
  options_ = options;
  whole_[Quota::kTreeRanks] = options.all_tree_ranks;
  whole_[Quota::kJobs] = options.all_jobs;
}

void QuotaLedger::SetWhole(Quota quota, int64_t whole) {
  std::lock_guard lock(mu_);
  whole_[quota] = whole;
}

void QuotaLedger::SetRows(absl::Span<const QuotaRecord> rows) {
  for (const QuotaRecord& row : rows) SetRow(row, /*drop=*/false);
}

void QuotaLedger::SetRow(const QuotaRecord& row, bool drop) {
  const std::optional<Quota> quota = FindQuota(row.limit);
  if (!quota.has_value()) return;  // of another release
  std::lock_guard lock(mu_);
  auto& holders = limits_[At(row.kind)];
  const auto holder = holders.try_emplace(row.holder).first;
  Limits& limits = holder->second;
  limits[static_cast<size_t>(*quota)] = drop ? std::nullopt : std::optional(row.value);
  const auto is_set = [](const std::optional<int64_t>& limit) { return limit.has_value(); };
  if (std::none_of(limits.begin(), limits.end(), is_set)) holders.erase(holder);
}

void QuotaLedger::SetAccounts(std::shared_ptr<const Accounts> accounts) {
  std::lock_guard lock(mu_);
  accounts_ = std::move(accounts);
  for (auto& holders : uses_) holders.clear();
  for (const auto& [leaf, use] : leaves_) {
    const auto& [user, account, partition] = leaf;
    std::string tenant;
    for (const Level& level : LevelsOf(user, account, partition, tenant)) {
      Use& sum = UseAt(level);
      sum.Add(use.ordinary, 1, /*is_exempt=*/false);
      sum.Add(use.exempt, 1, /*is_exempt=*/true);
      for (const auto& [guid, entries] : use.by_switch) sum.AddEntries(guid, entries);
    }
  }
}

std::shared_ptr<const Accounts> QuotaLedger::accounts() const {
  std::lock_guard lock(mu_);
  return accounts_;
}

Payer QuotaLedger::PayerOf(const std::string& user, bool is_administrator) const {
  return {user, is_administrator,
          accounts()->Choose(user, "", is_administrator).value_or(std::string())};
}

QuotaLedger::Levels QuotaLedger::LevelsOf(absl::string_view user, absl::string_view account,
                                          PartitionNum partition, std::string& tenant) const {
  Levels levels = {{QuotaHolder::kUser, user}};
  const std::vector<absl::string_view> chain = accounts_->ChainOf(account);
  for (const absl::string_view above : chain) levels.push_back({QuotaHolder::kAccount, above});
  if (chain.empty() && !account.empty()) levels.push_back({QuotaHolder::kAccount, account});
  tenant = accounts_->TenantOf(account, partition);
  if (!tenant.empty()) levels.push_back({QuotaHolder::kTenant, tenant});
  return levels;
}

const QuotaLedger::Use* QuotaLedger::UseOf(const Level& level) const {
  const auto& holders = uses_[At(level.kind)];
  const auto found = holders.find(level.name);
  return found == holders.end() ? nullptr : &found->second;
}

int64_t QuotaLedger::OrdinaryUse(const Level& level, Quota quota) const {
  const Use* const use = UseOf(level);
  return use == nullptr ? 0 : use->ordinary[quota];
}

std::optional<int64_t> QuotaLedger::OwnLimit(const Level& level, Quota quota) const {
  const auto& holders = limits_[At(level.kind)];
  const auto found = holders.find(level.name);
  return found == holders.end() ? std::nullopt : found->second[static_cast<size_t>(quota)];
}

int64_t QuotaLedger::LimitOf(const Level& level, Quota quota) const {
  if (const std::optional<int64_t> own = OwnLimit(level, quota)) return *own;
  if (level.kind != QuotaHolder::kUser) return QuotaLimit::kNone;
  const QuotaLimit& limit = options_[quota];
  if (!limit.is_percent) return limit.value;
  if (!IsCounted(quota)) return QuotaLimit::kNone;
  return std::max<int64_t>(1, Share(whole_[quota], limit.value));
}

int64_t QuotaLedger::ForUsers(Quota quota) const {
  const int64_t whole = whole_[quota];
  if (whole == QuotaLimit::kNone) return whole;
  return whole - Share(whole, options_.left_to_administrators);
}

absl::Status QuotaLedger::Over(const Level& level, const Payer& payer, Quota quota, int64_t used,
                               absl::string_view asked) const {
  const QuotaWords& words = WordsOf(quota);
  const int64_t limit = LimitOf(level, quota);
  const QuotaHolderName holder{level.kind, std::string(level.name)};
  const bool is_user = level.kind == QuotaHolder::kUser;
  absl::Status status = absl::ResourceExhaustedError(absl::StrCat(
      is_user ? holder.name : ToString(holder), IsCounted(quota) ? " holds " : " has spent ", used,
      " ", words.unit, " of the ", limit,
      OwnLimit(level, quota) ? " that an administrator allows (quota "
                             : " that one user may have (quotas.",
      words.name, ") and ", is_user ? "" : absl::StrCat(payer.user, " "), "asks for ", asked, "; ",
      words.make_room, ", or ask an administrator for a higher limit (coppicectl quota --set)"));
  status.SetPayload(
      kHoldersPayload,
      absl::Cord(absl::StrCat(ToString(holder), " ", used, " of ", limit, " ", words.unit,
                              " (quota ", words.name, "), ", asked, " asked for")));
  return status;
}

absl::Status QuotaLedger::OverOwn(const Level& level, const Payer& payer, Quota quota,
                                  int64_t more) const {
  const int64_t used = OrdinaryUse(level, quota);
  absl::Status status = Over(level, payer, quota, used, absl::StrCat(more, " more"));
  if (level.kind == QuotaHolder::kUser) return status;
  absl::flat_hash_map<std::string, int64_t> by_user;
  for (const auto& [leaf, use] : leaves_) {
    const auto& [user, account, partition] = leaf;
    std::string tenant;
    const Levels levels = LevelsOf(user, account, partition, tenant);
    const bool is_below = std::any_of(levels.begin(), levels.end(), [&](const Level& of) {
      return of.kind == level.kind && of.name == level.name;
    });
    if (is_below) by_user[user] += use.ordinary[quota];
  }
  std::vector<std::pair<int64_t, std::string>> holders = {
      {INT64_MAX, std::string(*status.GetPayload(kHoldersPayload))}};
  for (const auto& [user, held] : by_user) {
    if (held <= 0) continue;
    holders.emplace_back(
        held, absl::StrCat("user:", user, " ", held, " ", WordsOf(quota).unit, ", of ", used,
                           " of ", ToString({level.kind, std::string(level.name)})));
  }
  SetHolders(std::move(holders), status);
  return status;
}

absl::Status QuotaLedger::OverShare(Quota quota, int64_t used, int64_t more, int64_t limit) const {
  const QuotaWords& words = WordsOf(quota);
  absl::Status status = absl::ResourceExhaustedError(
      absl::StrCat("users together hold ", used, " ", words.unit, " of the ", limit,
                   " that they may have: the other ", options_.left_to_administrators,
                   "% are left to administrators (quotas.left_to_administrators), and ", more,
                   " more are asked for; wait until others give some back, or ", words.make_room));
  std::vector<std::pair<int64_t, std::string>> holders;
  for (const auto& [user, use] : uses_[At(QuotaHolder::kUser)]) {
    const int64_t held = use.ordinary[quota];
    if (held <= 0) continue;
    holders.emplace_back(held, absl::StrCat("user:", user, " ", held, " ", words.unit, ", of ",
                                            limit, " for all users"));
  }
  SetHolders(std::move(holders), status);
  return status;
}

absl::Status QuotaLedger::JudgeEntries(const Levels& levels, Entries entries) const {
  for (const Level& level : levels) {
    const int64_t limit = LimitOf(level, Quota::kSwitchEntries);
    if (limit == QuotaLimit::kNone) continue;
    const Use* const use = UseOf(level);
    absl::flat_hash_map<Guid, int64_t> held;
    for (const TreeSwitchRecord& entry : entries) {
      int64_t& of_switch = held[entry.guid];
      if (of_switch == 0 && use != nullptr) of_switch = use->EntriesOf(entry.guid);
      if (++of_switch > limit) {
        return absl::AbortedError(absl::StrCat(level.name, " has all entries of switch ",
                                               ToString(entry.guid), " that it may have"));
      }
    }
  }
  return absl::OkStatus();
}

int64_t QuotaLedger::EntriesOf(absl::string_view tenant, Guid guid) const {
  std::lock_guard lock(mu_);
  const Use* const use = UseOf({QuotaHolder::kTenant, tenant});
  return use == nullptr ? 0 : use->EntriesOf(guid);
}

std::vector<SwitchIndex> QuotaLedger::Restrict(const Payer& payer, const Fabric& fabric,
                                               absl::Span<SwitchCapacity> capacity) const {
  std::vector<SwitchIndex> spent;
  if (payer.is_exempt) return spent;
  const auto restrict_to = [&](size_t s, int64_t most) {
    uint32_t& entries = capacity[s].entries_free;
    if (most >= entries) return;
    entries = static_cast<uint32_t>(std::max<int64_t>(0, most));
    if (entries == 0) spent.emplace_back(static_cast<uint32_t>(s));
  };
  std::lock_guard lock(mu_);
  std::string tenant;
  for (const Level& level : LevelsOf(payer.user, payer.account, payer.partition, tenant)) {
    const int64_t limit = LimitOf(level, Quota::kSwitchEntries);
    if (limit == QuotaLimit::kNone) continue;
    for (size_t s = 0; s < capacity.size(); ++s) restrict_to(s, limit);
    const Use* const use = UseOf(level);
    if (use == nullptr) continue;
    for (const auto& [guid, held] : use->by_switch) {
      if (const auto s = fabric.FindSwitch(guid)) restrict_to(s->value(), limit - held);
    }
  }
  std::sort(spent.begin(), spent.end());
  return spent;
}

absl::Status QuotaLedger::JudgeLevels(const Levels& levels, const Payer& payer,
                                      const QuotaAmounts& amounts) const {
  for (size_t i = 0; i < kCountedQuotas; ++i) {
    const int64_t more = amounts.of[i];
    if (more <= 0) continue;
    for (const Level& level : levels) {
      const int64_t used = OrdinaryUse(level, Counted(i)), limit = LimitOf(level, Counted(i));
      if (used > limit || more > limit - used) return OverOwn(level, payer, Counted(i), more);
    }
  }
  return absl::OkStatus();
}

absl::Status QuotaLedger::Judge(const Payer& payer, const QuotaAmounts& amounts,
                                Entries entries) const {
  if (payer.is_exempt) return absl::OkStatus();
  std::string tenant;
  const Levels levels = LevelsOf(payer.user, payer.account, payer.partition, tenant);
  RETURN_IF_ERROR(JudgeLevels(levels, payer, amounts));
  for (size_t i = 0; i < kCountedQuotas; ++i) {
    const int64_t more = amounts.of[i], for_users = ForUsers(Counted(i));
    if (more <= 0) continue;
    if (ordinary_.of[i] > for_users || more > for_users - ordinary_.of[i]) {
      return OverShare(Counted(i), ordinary_.of[i], more, for_users);
    }
  }
  return entries.empty() ? absl::OkStatus() : JudgeEntries(levels, entries);
}

void QuotaLedger::Use::Add(const QuotaAmounts& amounts, int sign, bool is_exempt) {
  QuotaAmounts& own = is_exempt ? exempt : ordinary;
  for (size_t i = 0; i < kCountedQuotas; ++i) own.of[i] += sign * amounts.of[i];
}

void QuotaLedger::Use::AddEntries(Guid guid, int64_t more) {
  const auto found = by_switch.try_emplace(guid).first;
  found->second += more;
  if (found->second == 0) by_switch.erase(found);
}

int64_t QuotaLedger::Use::EntriesOf(Guid guid) const {
  const auto found = by_switch.find(guid);
  return found == by_switch.end() ? 0 : found->second;
}

QuotaLedger::Use& QuotaLedger::UseAt(const Level& level) {
  auto& holders = uses_[At(level.kind)];
  const auto found = holders.find(level.name);
  if (found != holders.end()) return found->second;
  return holders.try_emplace(std::string(level.name)).first->second;
}

void QuotaLedger::ForgetIfNone(const Level& level) {
  auto& holders = uses_[At(level.kind)];
  const auto found = holders.find(level.name);
  if (found->second.IsNone()) holders.erase(found);
}

void QuotaLedger::Add(const Payer& payer, const QuotaAmounts& amounts, Entries entries, int sign) {
  const auto add_to = [&](Use& use) {
    use.Add(amounts, sign, payer.is_exempt);
    for (const TreeSwitchRecord& entry : entries) use.AddEntries(entry.guid, sign);
  };
  std::string tenant;
  for (const Level& level : LevelsOf(payer.user, payer.account, payer.partition, tenant)) {
    add_to(UseAt(level));
    ForgetIfNone(level);
  }
  const auto leaf = leaves_.try_emplace({payer.user, payer.account, payer.partition}).first;
  add_to(leaf->second);
  if (leaf->second.IsNone()) leaves_.erase(leaf);
  for (size_t i = 0; i < kCountedQuotas; ++i) {
    const int64_t change = sign * amounts.of[i];
    all_.of[i] += change;
    if (!payer.is_exempt) ordinary_.of[i] += change;
  }
}

absl::Status QuotaLedger::Take(const Payer& payer, const QuotaAmounts& amounts, Entries entries) {
  std::lock_guard lock(mu_);
  absl::Status status = Judge(payer, amounts, entries);
  if (status.ok()) Add(payer, amounts, entries, 1);
  return status;
}

absl::Status QuotaLedger::Check(const Payer& payer, const QuotaAmounts& amounts) const {
  std::lock_guard lock(mu_);
  return Judge(payer, amounts, {});
}

absl::Status QuotaLedger::CheckLevels(const Payer& payer, const QuotaAmounts& amounts) const {
  if (payer.is_exempt) return absl::OkStatus();
  std::lock_guard lock(mu_);
  std::string tenant;
  return JudgeLevels(LevelsOf(payer.user, payer.account, payer.partition, tenant), payer, amounts);
}

QuotaAmounts QuotaLedger::Left(const Payer& payer) const {
  QuotaAmounts left = Unbounded();
  if (payer.is_exempt) return left;
  std::lock_guard lock(mu_);
  std::string tenant;
  const Levels levels = LevelsOf(payer.user, payer.account, payer.partition, tenant);
  for (size_t i = 0; i < kCountedQuotas; ++i) {
    const Quota quota = Counted(i);
    const auto bound = [&](int64_t limit, int64_t used) {
      if (limit == QuotaLimit::kNone) return;
      left.of[i] = std::min(left.of[i], std::max<int64_t>(0, limit - used));
    };
    for (const Level& level : levels) bound(LimitOf(level, quota), OrdinaryUse(level, quota));
    bound(ForUsers(quota), ordinary_.of[i]);
  }
  return left;
}

void QuotaLedger::Count(const Payer& payer, const QuotaAmounts& amounts, Entries entries) {
  std::lock_guard lock(mu_);
  Add(payer, amounts, entries, 1);
}

void QuotaLedger::Give(const Payer& payer, const QuotaAmounts& amounts, Entries entries) {
  std::lock_guard lock(mu_);
  Add(payer, amounts, entries, -1);
}

absl::Duration QuotaLedger::LongestLease(const Payer& payer) const {
  if (payer.is_exempt) return absl::InfiniteDuration();
  std::lock_guard lock(mu_);
  std::string tenant;
  int64_t seconds = QuotaLimit::kNone;
  for (const Level& level : LevelsOf(payer.user, payer.account, payer.partition, tenant)) {
    seconds = std::min(seconds, LimitOf(level, Quota::kLeaseSeconds));
  }
  return seconds == QuotaLimit::kNone ? absl::InfiniteDuration() : absl::Seconds(seconds);
}

absl::Status QuotaLedger::CheckLease(const Payer& payer, absl::Duration lease,
                                     absl::string_view what) const {
  const absl::Duration longest = LongestLease(payer);
  if (lease <= longest) return absl::OkStatus();
  absl::Status status = absl::ResourceExhaustedError(
      absl::StrCat(what, ": ", absl::FormatDuration(lease), " is longer than the ",
                   absl::FormatDuration(longest), " that ", payer.user,
                   " may have (quota lease_seconds); ask for a shorter one and renew it, or ask an "
                   "administrator for a higher limit (coppicectl quota --set)"));
  status.SetPayload(
      kHoldersPayload,
      absl::Cord(absl::StrCat("user:", payer.user, " ", absl::FormatDuration(lease), " of ",
                              absl::FormatDuration(longest), " (quota lease_seconds)")));
  return status;
}

int64_t QuotaLedger::KeptBytes(const std::string& user) const {
  std::lock_guard lock(mu_);
  return LimitOf({QuotaHolder::kUser, user}, Quota::kKeptBytes);
}

int64_t QuotaLedger::AllKeptBytes() const {
  std::lock_guard lock(mu_);
  return options_.all_kept_bytes;
}

std::vector<QuotaStanding> QuotaLedger::StandingOf(const QuotaHolderName& holder) const {
  std::vector<QuotaStanding> standing;
  std::lock_guard lock(mu_);
  const Level level{holder.kind, holder.name};
  const Use* const use = UseOf(level);
  for (size_t i = 0; i < kQuotas; ++i) {
    QuotaStanding one;
    one.quota = Counted(i);
    one.limit = LimitOf(level, one.quota);
    one.is_own = OwnLimit(level, one.quota).has_value();
    if (i < kCountedQuotas) {
      if (use != nullptr) one.used = use->ordinary.of[i] + use->exempt.of[i];
      one.all_used = all_.of[i];
      one.whole = whole_.of[i];
      one.for_users = ForUsers(one.quota);
    } else if (one.quota == Quota::kPlannerSeconds) {
      const auto& holders = spent_[At(level.kind)];
      const auto found = holders.find(level.name);
      if (found != holders.end()) one.used = static_cast<int64_t>(found->second.By(now_));
    }
    standing.push_back(one);
  }
  return standing;
}

std::vector<QuotaHolderName> QuotaLedger::Holders() const {
  std::set<QuotaHolderName> holders;
  std::lock_guard lock(mu_);
  for (const QuotaHolder kind : {QuotaHolder::kUser, QuotaHolder::kAccount, QuotaHolder::kTenant}) {
    for (const auto& [name, use] : uses_[At(kind)]) holders.insert({kind, name});
    for (const auto& [name, limits] : limits_[At(kind)]) holders.insert({kind, name});
  }
  return {holders.begin(), holders.end()};
}

}  // namespace coppice
