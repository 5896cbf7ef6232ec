#include "daemon/manager/ledgers.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/manager/placement/placement_view.h"

namespace coppice {
namespace {

constexpr size_t kMaxTold = 10;

const QuotaWords& WordsOf(Quota quota) { return kQuotaWords[static_cast<size_t>(quota)]; }
Quota Counted(size_t i) { return static_cast<Quota>(i); }

int64_t Share(int64_t whole, int64_t percent) {
  return whole == QuotaLimit::kNone ? whole : whole / 100 * percent + whole % 100 * percent / 100;
}

uint32_t FreeEntries(const CapabilityRecord& capability, uint32_t taken) {
  const uint64_t held = uint64_t{capability.entries_reserved} + taken;
  return capability.entries_total > held ? static_cast<uint32_t>(capability.entries_total - held)
                                         : 0;
}

}  // namespace

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
  if (!quota.has_value() || row.kind != QuotaHolder::kUser) return;  // of another release
  std::lock_guard lock(mu_);
  rows_.erase({row.holder, *quota});
  if (!drop) rows_.emplace(std::pair(row.holder, *quota), row.value);
}

bool QuotaLedger::HasOwn(const std::string& user, Quota quota) const {
  return rows_.contains({user, quota});
}

int64_t QuotaLedger::LimitOf(const std::string& user, Quota quota) const {
  if (const auto own = rows_.find({user, quota}); own != rows_.end()) return own->second;
  const QuotaLimit& limit = options_[quota];
  if (!limit.is_percent) return limit.value;
  if (static_cast<size_t>(quota) >= kCountedQuotas) return QuotaLimit::kNone;
  return std::max<int64_t>(1, Share(whole_[quota], limit.value));
}

int64_t QuotaLedger::ForUsers(Quota quota) const {
  const int64_t whole = whole_[quota];
  if (whole == QuotaLimit::kNone) return whole;
  return whole - Share(whole, options_.left_to_administrators);
}

absl::Status QuotaLedger::OverOwn(const std::string& user, Quota quota, int64_t used, int64_t more,
                                  int64_t limit) const {
  const QuotaWords& words = WordsOf(quota);
  absl::Status status = absl::ResourceExhaustedError(
      absl::StrCat(user, " holds ", used, " ", words.unit, " of the ", limit,
                   HasOwn(user, quota) ? " that an administrator allows (quota "
                                       : " that one user may have (quotas.",
                   words.name, ") and asks for ", more, " more; ", words.make_room,
                   ", or ask an administrator for a higher limit (coppicectl quota --set)"));
  status.SetPayload(kHoldersPayload, absl::Cord(absl::StrCat(
                                         "user:", user, " ", used, " of ", limit, " ", words.unit,
                                         " (quota ", words.name, "), ", more, " more asked for")));
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
  for (const auto& [user, use] : uses_) {
    const int64_t held = use.ordinary[quota];
    if (held <= 0) continue;
    holders.emplace_back(held, absl::StrCat("user:", user, " ", held, " ", words.unit, ", of ",
                                            limit, " for all users"));
  }
  SetHolders(std::move(holders), status);
  return status;
}

absl::Status QuotaLedger::Judge(const QuotaAccount& account, const QuotaAmounts& amounts) const {
  if (account.is_exempt) return absl::OkStatus();
  const auto found = uses_.find(account.user);
  for (size_t i = 0; i < kCountedQuotas; ++i) {
    const Quota quota = Counted(i);
    const int64_t more = amounts.of[i];
    if (more <= 0) continue;
    const int64_t used = found == uses_.end() ? 0 : found->second.ordinary.of[i];
    const int64_t limit = LimitOf(account.user, quota);
    if (used > limit || more > limit - used) {
      return OverOwn(account.user, quota, used, more, limit);
    }
    const int64_t for_users = ForUsers(quota);
    if (ordinary_.of[i] > for_users || more > for_users - ordinary_.of[i]) {
      return OverShare(quota, ordinary_.of[i], more, for_users);
    }
  }
  return absl::OkStatus();
}

void QuotaLedger::Add(const QuotaAccount& account, const QuotaAmounts& amounts, int sign) {
  const auto found = uses_.try_emplace(account.user).first;
  Use& use = found->second;
  QuotaAmounts& own = account.is_exempt ? use.exempt : use.ordinary;
  for (size_t i = 0; i < kCountedQuotas; ++i) {
    const int64_t change = sign * amounts.of[i];
    own.of[i] += change;
    all_.of[i] += change;
    if (!account.is_exempt) ordinary_.of[i] += change;
  }
  if (use.ordinary == QuotaAmounts() && use.exempt == QuotaAmounts()) uses_.erase(found);
}

absl::Status QuotaLedger::Take(const QuotaAccount& account, const QuotaAmounts& amounts) {
  std::lock_guard lock(mu_);
  absl::Status status = Judge(account, amounts);
  if (status.ok()) Add(account, amounts, 1);
  return status;
}

absl::Status QuotaLedger::Check(const QuotaAccount& account, const QuotaAmounts& amounts) const {
  std::lock_guard lock(mu_);
  return Judge(account, amounts);
}

QuotaAmounts QuotaLedger::Left(const QuotaAccount& account) const {
  QuotaAmounts left = Unbounded();
  if (account.is_exempt) return left;
  std::lock_guard lock(mu_);
  const auto found = uses_.find(account.user);
  for (size_t i = 0; i < kCountedQuotas; ++i) {
    const Quota quota = Counted(i);
    const int64_t used = found == uses_.end() ? 0 : found->second.ordinary.of[i];
    const int64_t limit = LimitOf(account.user, quota), for_users = ForUsers(quota);
    if (limit != QuotaLimit::kNone) left.of[i] = std::max<int64_t>(0, limit - used);
    if (for_users != QuotaLimit::kNone) {
      left.of[i] = std::min(left.of[i], std::max<int64_t>(0, for_users - ordinary_.of[i]));
    }
  }
  return left;
}

void QuotaLedger::Count(const QuotaAccount& account, const QuotaAmounts& amounts) {
  std::lock_guard lock(mu_);
  Add(account, amounts, 1);
}

void QuotaLedger::Give(const QuotaAccount& account, const QuotaAmounts& amounts) {
  std::lock_guard lock(mu_);
  Add(account, amounts, -1);
}

absl::Duration QuotaLedger::LongestLease(const QuotaAccount& account) const {
  if (account.is_exempt) return absl::InfiniteDuration();
  std::lock_guard lock(mu_);
  const int64_t seconds = LimitOf(account.user, Quota::kLeaseSeconds);
  return seconds == QuotaLimit::kNone ? absl::InfiniteDuration() : absl::Seconds(seconds);
}

absl::Status QuotaLedger::CheckLease(const QuotaAccount& account, absl::Duration lease,
                                     absl::string_view what) const {
  const absl::Duration longest = LongestLease(account);
  if (lease <= longest) return absl::OkStatus();
  absl::Status status = absl::ResourceExhaustedError(
      absl::StrCat(what, ": ", absl::FormatDuration(lease), " is longer than the ",
                   absl::FormatDuration(longest), " that ", account.user,
                   " may have (quota lease_seconds); ask for a shorter one and renew it, or ask an "
                   "administrator for a higher limit (coppicectl quota --set)"));
  status.SetPayload(
      kHoldersPayload,
      absl::Cord(absl::StrCat("user:", account.user, " ", absl::FormatDuration(lease), " of ",
                              absl::FormatDuration(longest), " (quota lease_seconds)")));
  return status;
}

int64_t QuotaLedger::KeptBytes(const std::string& user) const {
  std::lock_guard lock(mu_);
  return LimitOf(user, Quota::kKeptBytes);
}

int64_t QuotaLedger::AllKeptBytes() const {
  std::lock_guard lock(mu_);
  return options_.all_kept_bytes;
}

std::vector<QuotaStanding> QuotaLedger::StandingOf(const std::string& user) const {
  std::vector<QuotaStanding> standing;
  std::lock_guard lock(mu_);
  const auto found = uses_.find(user);
  for (size_t i = 0; i < kQuotas; ++i) {
    QuotaStanding one;
    one.quota = Counted(i);
    one.limit = LimitOf(user, one.quota);
    one.is_own = HasOwn(user, one.quota);
    if (i < kCountedQuotas) {
      if (found != uses_.end()) {
        one.used = found->second.ordinary.of[i] + found->second.exempt.of[i];
      }
      one.all_used = all_.of[i];
      one.whole = whole_.of[i];
      one.for_users = ForUsers(one.quota);
    }
    standing.push_back(one);
  }
  return standing;
}

std::vector<std::string> QuotaLedger::Users() const {
  std::set<std::string> users;
  std::lock_guard lock(mu_);
  for (const auto& [user, use] : uses_) users.insert(user);
  for (const auto& [key, value] : rows_) users.insert(key.first);
  return {users.begin(), users.end()};
}

EntryLedger::Slot& EntryLedger::SlotOf(Guid guid) {
  const auto [it, is_new] = by_guid_.try_emplace(guid, static_cast<uint32_t>(slots_.size()));
  if (is_new) {
    slots_.emplace_back();
    slots_.back().capability.guid = guid;
  }
  return slots_[it->second];
}

void EntryLedger::Publish(const Slot& slot) {
  if (slot.index == kNoSwitch) return;
  const CapabilityRecord& capability = slot.capability;
  if (slot.is_away) {
    capacity_[slot.index] = {0, 0, capability.degree_limit, false};
    return;
  }
  capacity_[slot.index] = {capability.entries_total, FreeEntries(capability, slot.taken()),
                           capability.degree_limit, slot.speaks};
}

void EntryLedger::SetCapabilities(absl::Span<const EntryUse> uses) {
  for (Slot& slot : slots_) {
    if (!slot.speaks) slot.capability = {slot.capability.guid, 0, 0, 0};
  }
  for (const EntryUse& use : uses) {
    Slot& slot = SlotOf(use.capability.guid);
    if (!slot.speaks) slot.capability = use.capability;
  }
}

void EntryLedger::SetCapability(const CapabilityRecord& capability) {
  Slot& slot = SlotOf(capability.guid);
  slot.capability = capability;
  slot.speaks = true;
  Publish(slot);
}

void EntryLedger::SetAway(Guid guid, bool is_away) {
  Slot& slot = SlotOf(guid);
  slot.is_away = is_away;
  Publish(slot);
}

void EntryLedger::Rebase(const Fabric& fabric, absl::Span<const EntryUse> uses) {
  SetCapabilities(uses);
  for (Slot& slot : slots_) slot.index = kNoSwitch;
  capacity_.assign(fabric.switch_count(), {});
  slot_of_switch_.resize(fabric.switch_count());
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    Slot& slot = SlotOf(fabric.switch_info(SwitchIndex(s)).guid);
    slot.index = s;
    slot_of_switch_[s] = static_cast<uint32_t>(&slot - slots_.data());
    Publish(slot);
  }
}

void EntryLedger::AddReserved(Slot& slot, int64_t more) {
  slot.reserved += static_cast<uint32_t>(more);
  entries_taken_ += static_cast<uint64_t>(more);
  Publish(slot);
}

bool EntryLedger::Reserve(absl::Span<const SwitchIndex> switches) {
  for (SwitchIndex s : switches) {
    if (s.value() >= capacity_.size() || capacity_[s.value()].entries_free == 0) return false;
  }
  for (SwitchIndex s : switches) AddReserved(SlotAt(s), 1);
  return true;
}

bool EntryLedger::ReserveAll(absl::Span<const absl::Span<const SwitchIndex>> trees) {
  for (size_t done = 0; done < trees.size(); ++done) {
    if (Reserve(trees[done])) continue;
    while (done-- > 0) {
      for (SwitchIndex s : trees[done]) AddReserved(SlotAt(s), -1);
    }
    return false;
  }
  return true;
}

void EntryLedger::Settle(TreeId tree, absl::Span<const TreeSwitchRecord> switches) {
  for (const TreeSwitchRecord& record : switches) {
    Slot& slot = SlotOf(record.guid);
    --slot.reserved;
    slot.trees.insert(std::upper_bound(slot.trees.begin(), slot.trees.end(), tree), tree);
  }
}

void EntryLedger::Unsettle(TreeId tree, absl::Span<const TreeSwitchRecord> switches) {
  for (const TreeSwitchRecord& record : switches) {
    Slot& slot = SlotOf(record.guid);
    slot.trees.erase(std::lower_bound(slot.trees.begin(), slot.trees.end(), tree));
    ++slot.reserved;
  }
}

void EntryLedger::Cancel(absl::Span<const TreeSwitchRecord> switches) {
  for (const TreeSwitchRecord& record : switches) AddReserved(SlotOf(record.guid), -1);
}

bool EntryLedger::ClaimMore(absl::Span<const Claim> claims) {
  for (const Claim& claim : claims) {
    const Slot& slot = SlotOf(claim.guid);
    const uint32_t free = slot.is_away ? 0 : FreeEntries(slot.capability, slot.taken());
    if (free < claim.more) return false;
  }
  for (const Claim& claim : claims) AddReserved(SlotOf(claim.guid), claim.more);
  return true;
}

void EntryLedger::Unclaim(absl::Span<const Claim> claims) {
  for (const Claim& claim : claims) AddReserved(SlotOf(claim.guid), -int64_t{claim.more});
}

void EntryLedger::Restore(TreeId tree, absl::Span<const TreeSwitchRecord> switches) {
  for (const TreeSwitchRecord& record : switches) {
    Slot& slot = SlotOf(record.guid);
    slot.trees.insert(std::upper_bound(slot.trees.begin(), slot.trees.end(), tree), tree);
    Publish(slot);
  }
  entries_taken_ += switches.size();
}

void EntryLedger::Release(TreeId tree, absl::Span<const TreeSwitchRecord> switches) {
  for (const TreeSwitchRecord& record : switches) {
    Slot& slot = SlotOf(record.guid);
    slot.trees.erase(std::lower_bound(slot.trees.begin(), slot.trees.end(), tree));
    Publish(slot);
  }
  entries_taken_ -= switches.size();
}

bool EntryLedger::IsAway(Guid guid) const {
  const auto it = by_guid_.find(guid);
  return it != by_guid_.end() && slots_[it->second].is_away;
}

EntryUse EntryLedger::Use(Guid guid) const {
  const auto it = by_guid_.find(guid);
  if (it == by_guid_.end()) return {{guid, 0, 0, 0}, 0};
  const Slot& slot = slots_[it->second];
  return {slot.capability, slot.taken()};
}

std::vector<TreeId> EntryLedger::TreesOf(Guid guid) const {
  const auto it = by_guid_.find(guid);
  return it == by_guid_.end() ? std::vector<TreeId>() : slots_[it->second].trees;
}

uint64_t EntryLedger::entries_total() const {
  uint64_t total = 0;
  for (const SwitchCapacity& capacity : capacity_) total += capacity.entries_total;
  return total;
}

uint64_t EntryLedger::entries_reserved() const {
  uint64_t total = 0;
  for (const uint32_t slot : slot_of_switch_) {
    if (!slots_[slot].is_away) total += slots_[slot].capability.entries_reserved;
  }
  return total;
}

}  // namespace coppice
