#include "tests/unit/tree/slot_oracle.h"

#include <algorithm>
#include <unordered_set>

#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

uint32_t NonZeroDigits(uint64_t slot, uint32_t width) {
  uint32_t digits = 0;
  for (; slot > 0; slot /= width) digits += slot % width != 0 ? 1 : 0;
  return digits;
}

uint64_t ParentSlot(uint64_t slot, uint32_t width) {
  uint64_t low = 1;
  while (slot % (low * width) == 0) low *= width;
  return slot - slot % (low * width);
}

using Patterns = std::unordered_set<SlotSet>;

SlotSet Run(uint32_t count) {
  SlotSet run;
  for (uint32_t i = 0; i < count; ++i) run.set(i);
  return run;
}

// Every set of slots that a group can occupy.
class Trial {
 public:
  Trial(const NestedGroups& groups, uint32_t width) : groups_(groups), width_(width) {}

  Patterns Of(uint32_t part) {
    if (part < groups_.rank_count) return {Run(1)};
    const NestedGroups::Group& group = groups_.groups[part - groups_.rank_count];
    if (group.ordered) return {Run(group.end - group.begin)};
    std::vector<uint32_t> parts(groups_.parts_of(group).begin(), groups_.parts_of(group).end());
    std::sort(parts.begin(), parts.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(BlockSlots(groups_, a, width_), SizeIfOrdered(a)) >
             std::pair(BlockSlots(groups_, b, width_), SizeIfOrdered(b));
    });
    std::vector<Patterns> inner;
    for (const uint32_t p : parts) inner.push_back(Of(p));
    Patterns found;
    Extend(parts, inner, 0, BlockSlots(groups_, part, width_), {}, {}, 0, found);
    return found;
  }

 private:
  // Ranks of a part that has one pattern only; 0 for a group of groups.
  uint32_t SizeIfOrdered(uint32_t part) const {
    if (part < groups_.rank_count) return 1;
    const NestedGroups::Group& group = groups_.groups[part - groups_.rank_count];
    return group.ordered ? group.end - group.begin : 0;
  }

  void Extend(const std::vector<uint32_t>& parts, const std::vector<Patterns>& inner, size_t next,
              uint32_t slots, const SlotSet& owned, const SlotSet& occupied, uint32_t last_offset,
              Patterns& found) {
    if (next == parts.size()) {
      for (uint32_t slot = 1; slot < slots; ++slot) {
        if (occupied[slot] && !occupied[ParentSlot(slot, width_)]) return;
      }
      if (occupied[0]) found.insert(occupied);
      return;
    }
    const uint32_t block = BlockSlots(groups_, parts[next], width_);
    // Parts that are alike stand in one order only.
    const bool alike = next > 0 && SizeIfOrdered(parts[next]) > 0 &&
                       SizeIfOrdered(parts[next]) == SizeIfOrdered(parts[next - 1]);
    for (uint32_t offset = alike ? last_offset + block : 0; offset < slots; offset += block) {
      const SlotSet owns = Run(block) << offset;
      if ((owns & owned).any()) continue;
      for (const SlotSet& pattern : inner[next]) {
        Extend(parts, inner, next + 1, slots, owned | owns, occupied | (pattern << offset), offset,
               found);
      }
    }
  }

  const NestedGroups& groups_;
  const uint32_t width_;
};

// The ranks of a part, groups opened.
void CollectRanks(const NestedGroups& groups, uint32_t part, std::vector<uint32_t>& ranks) {
  if (part < groups.rank_count) {
    ranks.push_back(part);
    return;
  }
  for (const uint32_t inner : groups.parts_of(groups.groups[part - groups.rank_count])) {
    CollectRanks(groups, inner, ranks);
  }
}

// First slot of the aligned block of a part, by where its ranks are.
uint64_t BlockBegin(const NestedGroups& groups, uint32_t part, uint32_t width,
                    const std::vector<uint64_t>& slots) {
  std::vector<uint32_t> ranks;
  CollectRanks(groups, part, ranks);
  const uint64_t block = BlockSlots(groups, part, width);
  return slots[ranks.front()] / block * block;
}

std::string WrongInGroup(const NestedGroups& groups, uint32_t g, uint32_t width,
                         const std::vector<uint64_t>& slots) {
  const uint32_t self = groups.rank_count + g;
  const uint64_t begin = BlockBegin(groups, self, width, slots);
  const uint64_t end = begin + BlockSlots(groups, self, width);
  std::vector<std::pair<uint64_t, uint64_t>> blocks;
  uint64_t expected = begin;
  for (const uint32_t part : groups.parts_of(groups.groups[g])) {
    std::vector<uint32_t> ranks;
    CollectRanks(groups, part, ranks);
    const uint64_t from = BlockBegin(groups, part, width, slots);
    const uint64_t to = from + BlockSlots(groups, part, width);
    for (const uint32_t rank : ranks) {
      if (slots[rank] < from || slots[rank] >= to || slots[rank] < begin || slots[rank] >= end) {
        return absl::StrCat("rank ", rank, " is outside its block");
      }
    }
    if (groups.groups[g].ordered && slots[part] != expected++) return "a host is out of order";
    blocks.emplace_back(from, to);
  }
  std::sort(blocks.begin(), blocks.end());
  for (size_t i = 0; i + 1 < blocks.size(); ++i) {
    if (blocks[i].second > blocks[i + 1].first) return "two blocks overlap";
  }
  return "";
}

}  // namespace

uint32_t BlockSlots(const NestedGroups& groups, uint32_t part, uint32_t width) {
  if (part < groups.rank_count) return 1;
  uint64_t sum = 0, slots = 1;
  for (const uint32_t inner : groups.parts_of(groups.groups[part - groups.rank_count])) {
    sum += BlockSlots(groups, inner, width);
  }
  while (slots < sum) slots *= width;
  return static_cast<uint32_t>(slots);
}

std::vector<std::optional<uint32_t>> LeastHeightsByTrial(const NestedGroups& groups,
                                                         uint32_t width) {
  const auto whole = static_cast<uint32_t>(groups.rank_count + groups.groups.size() - 1);
  std::vector<std::optional<uint32_t>> least(groups.rank_count + 1);
  for (const SlotSet& occupied : Trial(groups, width).Of(whole)) {
    uint32_t height = 0, most_children = 0;
    std::vector<uint32_t> children(kOracleSlots, 0);
    for (uint32_t slot = 1; slot < kOracleSlots; ++slot) {
      if (!occupied[slot]) continue;
      height = std::max(height, NonZeroDigits(slot, width));
      most_children = std::max(most_children, ++children[ParentSlot(slot, width)]);
    }
    for (uint32_t limit = most_children; limit < least.size(); ++limit) {
      if (!least[limit].has_value() || height < *least[limit]) least[limit] = height;
    }
  }
  return least;
}

std::string WrongInArrangement(const NestedGroups& groups, uint32_t width, uint32_t degree_limit,
                               const GroupArrangement& arrangement) {
  const std::vector<uint64_t>& slots = arrangement.slots;
  if (slots.size() != groups.rank_count) return "slots are missing";
  std::vector<uint32_t> children(groups.rank_count, 0);
  uint32_t height = 0;
  std::vector<std::pair<uint64_t, uint32_t>> rank_at;
  for (uint32_t rank = 0; rank < slots.size(); ++rank) rank_at.emplace_back(slots[rank], rank);
  std::sort(rank_at.begin(), rank_at.end());
  for (const auto& [slot, rank] : rank_at) {
    height = std::max(height, NonZeroDigits(slot, width));
    if (slot == 0) {
      if (arrangement.parents[rank] != -1) return "the rank at slot 0 has a parent";
      continue;
    }
    const uint64_t above = ParentSlot(slot, width);
    const auto at = std::lower_bound(rank_at.begin(), rank_at.end(), std::pair(above, 0U));
    if (at == rank_at.end() || at->first != above) {
      return absl::StrCat("slot ", slot, " has an empty parent slot ", above);
    }
    if (arrangement.parents[rank] != static_cast<int32_t>(at->second)) {
      return absl::StrCat("rank ", rank, " is not below the rank at its parent's slot");
    }
    if (++children[at->second] > degree_limit) {
      return absl::StrCat("rank ", at->second, " has too many children");
    }
  }
  if (rank_at.front().first != 0) return "slot 0 is empty";
  if (height != arrangement.height) return "the height is wrong";
  for (uint32_t g = 0; g < groups.groups.size(); ++g) {
    std::string wrong = WrongInGroup(groups, g, width, slots);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace coppice
