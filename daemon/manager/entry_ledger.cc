#include "daemon/manager/entry_ledger.h"

#include <algorithm>

namespace coppice {
namespace {

uint32_t FreeEntries(const CapabilityRecord& capability, uint32_t taken) {
  const uint64_t held = uint64_t{capability.entries_reserved} + taken;
  return capability.entries_total > held ? static_cast<uint32_t>(capability.entries_total - held)
                                         : 0;
}

}  // namespace

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

void EntryLedger::Drop(Slot& slot, TreeId tree) {
  slot.trees.erase(std::find_if(slot.trees.begin(), slot.trees.end(),
                                [tree](const Holder& holder) { return holder.tree == tree; }));
}

void EntryLedger::Settle(TreeId tree, absl::Span<const TreeSwitchRecord> switches,
                         absl::Time came) {
  for (const TreeSwitchRecord& record : switches) {
    Slot& slot = SlotOf(record.guid);
    --slot.reserved;
    slot.trees.push_back({tree, came});
  }
}

void EntryLedger::Unsettle(TreeId tree, absl::Span<const TreeSwitchRecord> switches) {
  for (const TreeSwitchRecord& record : switches) {
    Slot& slot = SlotOf(record.guid);
    Drop(slot, tree);
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

void EntryLedger::Restore(TreeId tree, absl::Span<const TreeSwitchRecord> switches,
                          absl::Time came) {
  for (const TreeSwitchRecord& record : switches) {
    Slot& slot = SlotOf(record.guid);
    slot.trees.push_back({tree, came});
    Publish(slot);
  }
  entries_taken_ += switches.size();
}

void EntryLedger::Release(TreeId tree, absl::Span<const TreeSwitchRecord> switches) {
  for (const TreeSwitchRecord& record : switches) {
    Slot& slot = SlotOf(record.guid);
    Drop(slot, tree);
    Publish(slot);
  }
  entries_taken_ -= switches.size();
}

bool EntryLedger::IsAway(Guid guid) const {
  const auto it = by_guid_.find(guid);
  return it != by_guid_.end() && slots_[it->second].is_away;
}

int64_t EntryLedger::FreeOf(Guid guid) const {
  const auto it = by_guid_.find(guid);
  if (it == by_guid_.end() || slots_[it->second].is_away) return 0;
  const Slot& slot = slots_[it->second];
  return FreeEntries(slot.capability, slot.taken());
}

EntryUse EntryLedger::Use(Guid guid) const {
  const auto it = by_guid_.find(guid);
  if (it == by_guid_.end()) return {{guid, 0, 0, 0}, 0};
  const Slot& slot = slots_[it->second];
  return {slot.capability, slot.taken()};
}

absl::Span<const EntryLedger::Holder> EntryLedger::TreesOf(Guid guid) const {
  const auto it = by_guid_.find(guid);
  if (it == by_guid_.end()) return {};
  return slots_[it->second].trees;
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
