#include "daemon/manager/kept_entries.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

void AddTo(std::vector<KeptEntries::Share>& shares, const ReservationRecord& reservation,
           uint32_t entries) {
  auto share = std::find_if(shares.begin(), shares.end(), [&](const KeptEntries::Share& of) {
    return of.tenant == reservation.tenant;
  });
  if (share == shares.end()) {
    shares.push_back(
        {reservation.tenant, 0, 0, reservation.id, reservation.created, reservation.until});
    share = std::prev(shares.end());
  }
  (reservation.lends ? share->lent : share->kept) += entries;
  share->created = std::min(share->created, reservation.created);
  if (reservation.until >= share->until) return;
  share->until = reservation.until;
  share->reservation = reservation.id;
}

}  // namespace

KeptEntries::KeptEntries(absl::Span<const ReservationRecord> reservations, absl::Time now) {
  for (const ReservationRecord& reservation : reservations) {
    if (now < reservation.from || now >= reservation.until) continue;
    for (const Guid guid : reservation.switches) {
      AddTo(switches_[guid], reservation, reservation.entries);
    }
    for (const std::string& node : reservation.nodes) AddTo(nodes_[node], reservation, 0);
  }
}

int64_t HeldEntries::Of(const std::string& tenant, Guid guid) const {
  int64_t held = quotas_.EntriesOf(tenant, guid);
  if (more_ == nullptr) return held;
  const auto found = more_->find({tenant, guid});
  return found == more_->end() ? held : held + found->second;
}

int64_t KeptEntries::Unused(const Share& share, Guid guid, const HeldEntries& held) {
  return std::max<int64_t>(0, share.kept + share.lent - held.Of(share.tenant, guid));
}

int64_t KeptEntries::KeptFrom(absl::string_view tenant, Guid guid, const HeldEntries& held,
                              Asker asker) const {
  const auto found = switches_.find(guid);
  if (found == switches_.end()) return 0;
  int64_t kept = 0;
  for (const Share& share : found->second) {
    if (share.tenant == tenant) continue;
    const int64_t unused = Unused(share, guid, held);
    // What its trees hold is of what it lends first: the rest stays for certain.
    kept += asker == Asker::kCalledBack ? unused : std::min(share.kept, unused);
  }
  return kept;
}

const KeptEntries::Share* KeptEntries::ShareOf(absl::string_view tenant, Guid guid) const {
  const auto found = switches_.find(guid);
  if (found == switches_.end()) return nullptr;
  for (const Share& share : found->second) {
    if (share.tenant == tenant) return &share;
  }
  return nullptr;
}

uint32_t KeptEntries::FreeFor(absl::string_view tenant, Guid guid, const HeldEntries& held,
                              Asker asker, uint32_t free) const {
  const int64_t beyond = int64_t{free} - KeptFrom(tenant, guid, held, asker);
  const Share* const own = asker == Asker::kGrant ? ShareOf(tenant, guid) : nullptr;
  const int64_t owed = own == nullptr ? 0 : Unused(*own, guid, held);
  return static_cast<uint32_t>(std::max({beyond, owed, int64_t{0}}));
}

std::vector<SwitchIndex> KeptEntries::Apply(absl::string_view tenant, const Fabric& fabric,
                                            const HeldEntries& held, Asker asker,
                                            absl::Span<SwitchCapacity> capacity) const {
  std::vector<SwitchIndex> without;
  for (const auto& [guid, shares] : switches_) {
    const std::optional<SwitchIndex> s = fabric.FindSwitch(guid);
    if (!s.has_value() || s->value() >= capacity.size()) continue;
    SwitchCapacity& of = capacity[s->value()];
    const uint32_t before = of.entries_free;
    of.entries_free =
        std::min(FreeFor(tenant, guid, held, asker, of.entries_free), of.entries_total);
    if (before > 0 && of.entries_free == 0) without.push_back(*s);
  }
  std::sort(without.begin(), without.end());
  return without;
}

std::string ToString(const KeptEntries::Share& share) {
  return absl::StrCat(share.reservation.value(), " of tenant ", share.tenant, " until ",
                      absl::FormatTime(absl::RFC3339_sec, share.until, absl::UTCTimeZone()));
}

std::string KeptEntries::WordsOf(absl::string_view tenant, const Fabric& fabric,
                                 absl::Span<const SwitchIndex> without) const {
  if (without.empty()) return "";
  const auto found = switches_.find(fabric.switch_info(without.front()).guid);
  if (found == switches_.end()) return "";
  const Share* first = nullptr;
  for (const Share& share : found->second) {
    if (share.tenant == tenant) continue;
    if (first == nullptr || share.until < first->until) first = &share;
  }
  return absl::StrCat("; of ", without.size(), without.size() == 1 ? " switch" : " switches",
                      " all free entries are kept, of the first by reservation ",
                      first == nullptr ? "" : ToString(*first));
}

}  // namespace coppice
