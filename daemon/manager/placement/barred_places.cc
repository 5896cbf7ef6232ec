#include "daemon/manager/placement/barred_places.h"

#include "absl/strings/str_cat.h"

namespace coppice {

Occupancy& BarredPlaces::Own() {
  if (!own_.has_value()) own_ = placing_.occupancy;
  return *own_;
}

void BarredPlaces::BarForeign(PartitionNum partition, bool has_trees) {
  if (partition == PartitionNum()) return;
  partition_ = partition;
  const Fabric& fabric = *placing_.snapshot.fabric;
  const auto found = placing_.partitions->full_members.find(partition);
  const bool has_members = found != placing_.partitions->full_members.end();
  const size_t members = has_members ? found->second.size() : 0;
  if (members < fabric.host_count()) {
    std::vector<bool> is_member(fabric.host_count());
    if (has_members) {
      for (const HostIndex host : found->second) is_member[host.value()] = true;
    }
    for (size_t h = 0; h < is_member.size(); ++h) {
      if (!is_member[h]) Own().is_out[h] = true;
    }
    foreign_hosts_ = static_cast<uint32_t>(fabric.host_count() - members);
  }
  if (!has_trees) return;
  for (uint32_t s = 0; s < placing_.occupancy.entries_left.size(); ++s) {
    const Guid guid = fabric.switch_info(SwitchIndex(s)).guid;
    if (placing_.occupancy.entries_left[s] == 0) continue;
    if (placing_.snapshot.partitions->Of(guid, partition) == Membership::kFull) continue;
    Own().entries_left[s] = 0;
    ++foreign_switches_;
  }
}

void BarredPlaces::BarKept(absl::string_view tenant, const KeptEntries& kept,
                           const HeldEntries& held, bool has_trees) {
  const Fabric& fabric = *placing_.snapshot.fabric;
  size_t nodes = 0;
  const KeptEntries::Share* first = nullptr;
  for (const auto& [node, shares] : kept.nodes()) {
    const KeptEntries::Share& share = shares.front();  // one reservation keeps a node at a time
    const std::optional<HostIndex> host = fabric.FindHost(node);
    if (share.tenant == tenant || !host.has_value()) continue;
    ++nodes;
    Own().is_out[host->value()] = true;
    if (first == nullptr || share.until < first->until) first = &share;
  }
  if (nodes > 0) {
    kept_hosts_ =
        absl::StrCat("; ", nodes, nodes == 1 ? " node is" : " nodes are",
                     " kept for other tenants, the first by reservation ", ToString(*first));
  }
  if (!has_trees || kept.switches().empty()) return;
  std::vector<SwitchIndex> without;
  for (const auto& [guid, shares] : kept.switches()) {
    const std::optional<SwitchIndex> s = fabric.FindSwitch(guid);
    if (!s.has_value() || s->value() >= placing_.occupancy.entries_left.size()) continue;
    uint32_t& left = Own().entries_left[s->value()];
    const uint32_t before = left;
    left = kept.FreeFor(tenant, guid, held, KeptEntries::Asker::kGrant, left);
    if (before > 0 && left == 0) without.push_back(*s);
  }
  kept_switches_ = kept.WordsOf(tenant, fabric, without);
}

std::string BarredPlaces::WordsOfSwitches() const {
  if (foreign_switches_ == 0) return kept_switches_;
  return absl::StrCat("; ", foreign_switches_,
                      foreign_switches_ == 1 ? " switch cannot serve, as its port 0 is"
                                             : " switches cannot serve, as their ports 0 are",
                      " no full member of partition ", ToString(partition_),
                      " (ALL_SWITCHES=full in partitions.conf)", kept_switches_);
}

std::string BarredPlaces::Words() const {
  std::string words;
  if (foreign_hosts_ > 0) {
    absl::StrAppend(&words, "; ", foreign_hosts_, " of ", placing_.snapshot.fabric->host_count(),
                    " nodes are out as their first ports are no full members of partition ",
                    ToString(partition_));
  }
  return absl::StrCat(words, WordsOfSwitches(), kept_hosts_);
}

}  // namespace coppice
