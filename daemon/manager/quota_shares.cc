// What QuotaLedger shares out where several want the same: entries among tenants, by weight, and
// the planner's time.
#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "daemon/manager/quota_ledger.h"

namespace coppice {
namespace {

constexpr int64_t kMaxTenantWeight = 1'000'000;

}  // namespace

// --- Entries ---

void QuotaLedger::NoteAsking(const Payer& payer, absl::Span<const RefusedSwitch> full,
                             absl::Duration now) {
  const std::string tenant = TenantOf(payer);
  if (tenant.empty() || payer.is_exempt) return;
  std::lock_guard lock(mu_);
  now_ = std::max(now_, now);
  absl::erase_if(asking_, [&](const auto& one) { return one.second.until <= now_; });
  Asking& asking = asking_[tenant];
  asking.until = now_ + kAsking;
  for (const RefusedSwitch& one : full) asking.switches.insert(one.guid);
}

void QuotaLedger::SetReserved(Reserved entries) {
  std::lock_guard lock(mu_);
  reserved_ = std::move(entries);
}

int64_t QuotaLedger::ReservedOf(absl::string_view tenant, Guid guid) const {
  const auto of_tenant = reserved_.find(tenant);
  if (of_tenant == reserved_.end()) return 0;
  const auto of_switch = of_tenant->second.find(guid);
  if (of_switch == of_tenant->second.end()) return 0;
  const Use* const use = UseOf({QuotaHolder::kTenant, tenant});
  const int64_t held = use == nullptr ? 0 : use->EntriesOf(guid);
  return std::max<int64_t>(0, of_switch->second - held);
}

int64_t QuotaLedger::WeightOf(absl::string_view tenant) const {
  return std::min(OwnLimit({QuotaHolder::kTenant, tenant}, Quota::kWeight).value_or(1),
                  kMaxTenantWeight);
}

int64_t QuotaLedger::EntriesHeldBy(absl::string_view tenant) const {
  if (!tenant.empty()) return OrdinaryUse({QuotaHolder::kTenant, tenant}, Quota::kEntries);
  int64_t held = ordinary_[Quota::kEntries];
  for (const auto& [name, use] : UsesOf(QuotaHolder::kTenant)) {
    held -= use.ordinary[Quota::kEntries];
  }
  return held;
}

int64_t QuotaLedger::ShareOf(absl::string_view tenant) const {
  std::set<absl::string_view> sharing = {tenant};
  for (const auto& [name, use] : UsesOf(QuotaHolder::kTenant)) {
    if (use.ordinary[Quota::kEntries] > 0) sharing.insert(name);
  }
  if (EntriesHeldBy("") > 0) sharing.insert("");
  for (const auto& [name, asking] : asking_) {
    if (asking.until > now_) sharing.insert(name);
  }
  int64_t sum = 0;
  for (const absl::string_view name : sharing) sum += WeightOf(name);
  const int64_t whole = ForUsers(Quota::kEntries);
  if (sum == 0 || whole == QuotaLimit::kNone) return whole;
  const double share = static_cast<double>(WeightOf(tenant)) / static_cast<double>(sum);
  int64_t reserved = 0;
  if (const auto of_tenant = reserved_.find(tenant); of_tenant != reserved_.end()) {
    for (const auto& [guid, kept] : of_tenant->second) reserved += kept;
  }
  return static_cast<int64_t>(share * static_cast<double>(whole)) + reserved;
}

absl::Status QuotaLedger::CheckShare(const Payer& payer, Entries entries,
                                     std::vector<Guid>& contested) const {
  if (payer.is_exempt || entries.empty()) return absl::OkStatus();
  std::lock_guard lock(mu_);
  if (asking_.empty()) return absl::OkStatus();
  const std::string tenant = accounts_->TenantOf(payer.account, payer.partition);
  const int64_t held = EntriesHeldBy(tenant), share = ShareOf(tenant);
  const QuotaWords& words = kQuotaWords[static_cast<size_t>(Quota::kEntries)];
  for (const auto& [other, asking] : asking_) {
    if (asking.until <= now_ || other == tenant) continue;
    const int64_t others = EntriesHeldBy(other), others_share = ShareOf(other);
    if (others >= others_share) continue;
    int64_t more = 0;
    absl::flat_hash_map<Guid, int64_t> of_switches;
    for (const TreeSwitchRecord& entry : entries) {
      if (!asking.switches.contains(entry.guid)) continue;
      if (++of_switches[entry.guid] > ReservedOf(tenant, entry.guid)) ++more;
    }
    if (more <= std::max<int64_t>(0, share - held)) continue;
    contested.assign(asking.switches.begin(), asking.switches.end());
    absl::Status status = absl::ResourceExhaustedError(absl::StrCat(
        "tenant:", tenant, " holds ", held, " ", words.unit, ", asks for ", more,
        " more, and its share is ", share, " while tenant:", other, " asks, which has ", others,
        " of its ", others_share, "; wait until it has its share, ", words.make_room,
        ", or ask an administrator for more weight (coppicectl quota --tenant ", tenant,
        " --set weight=2)"));
    status.SetPayload(
        kHoldersPayload,
        absl::Cord(absl::StrCat("tenant:", tenant, " ", held, " ", words.unit, ", of its share of ",
                                share, "\ntenant:", other, " ", others, " ", words.unit,
                                ", of its share of ", others_share, ", and asks")));
    return status;
  }
  return absl::OkStatus();
}

QuotaLedger::Turn QuotaLedger::TurnOf(const std::string& user) const {
  std::lock_guard lock(mu_);
  const std::string account = accounts_->Choose(user, "", false).value_or(std::string());
  std::string tenant(accounts_->TenantOf(account));
  const int64_t weight = std::max<int64_t>(1, WeightOf(tenant));
  return {std::move(tenant), weight};
}

// --- The planner's time ---

double QuotaLedger::Spent::By(absl::Duration now) const {
  return seconds *
         std::exp(-absl::FDivDuration(std::max(now - at, absl::ZeroDuration()), kPlannerMemory));
}

absl::Status QuotaLedger::CheckPlanner(const Payer& payer, absl::Duration now) {
  if (payer.is_exempt) return absl::OkStatus();
  std::lock_guard lock(mu_);
  now_ = std::max(now_, now);
  std::string tenant;
  for (const Level& level : LevelsOf(payer.user, payer.account, payer.partition, tenant)) {
    const int64_t limit = LimitOf(level, Quota::kPlannerSeconds);
    if (limit == QuotaLimit::kNone) continue;
    const auto& holders = spent_[At(level.kind)];
    const auto found = holders.find(level.name);
    const double spent = found == holders.end() ? 0 : found->second.By(now);
    if (spent < static_cast<double>(limit)) continue;
    return Over(level, payer, Quota::kPlannerSeconds, static_cast<int64_t>(spent), "more");
  }
  return absl::OkStatus();
}

void QuotaLedger::SpendPlanner(const Payer& payer, absl::Duration spent, absl::Duration now) {
  constexpr size_t kManyHolders = 1024;
  std::lock_guard lock(mu_);
  now_ = std::max(now_, now);
  std::string tenant;
  for (const Level& level : LevelsOf(payer.user, payer.account, payer.partition, tenant)) {
    auto& holders = spent_[At(level.kind)];
    auto found = holders.find(level.name);
    if (found == holders.end()) {
      if (holders.size() >= kManyHolders) {
        absl::erase_if(holders, [&](const auto& of) { return of.second.By(now) < 1e-3; });
      }
      found = holders.try_emplace(std::string(level.name)).first;
    }
    found->second = {found->second.By(now) + absl::ToDoubleSeconds(spent), now};
  }
}

}  // namespace coppice
