#include "daemon/tree/group_slots.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "daemon/tree/chain_placement.h"
#include "daemon/tree/type1_ranks.h"

namespace coppice {
namespace {

constexpr uint32_t kNoLimit = ChainPlacement::kNoLimit;

// Arranges one group after another, inner before outer.
class Arranger {
 public:
  Arranger(const NestedGroups& groups, uint32_t width) : groups_(groups), width_(width) {}

  // False: a group could not be placed. Inner groups keep their first rank at `inner_limit`
  // children where they can, to leave room for those that it serves outside.
  bool Arrange(uint32_t degree_limit, uint32_t inner_limit) {
    parents_.assign(groups_.rank_count, -1);
    degrees_.assign(groups_.rank_count, 0);
    offsets_.assign(groups_.rank_count + groups_.groups.size(), 0);
    units_.resize(groups_.groups.size());
    for (uint32_t g = 0; g < groups_.groups.size(); ++g) {
      const NestedGroups::Group& group = groups_.groups[g];
      const bool is_whole = g + 1 == groups_.groups.size();
      if (group.ordered) {
        units_[g] = FillInOrder(groups_.parts_of(group));
      } else if (!PlaceParts(group, units_[g], degree_limit,
                             is_whole ? degree_limit : inner_limit)) {
        return false;
      }
    }
    return true;
  }

  uint32_t MostDegree() const { return *std::max_element(degrees_.begin(), degrees_.end()); }
  uint32_t RankOfMostDegree() const {
    return static_cast<uint32_t>(std::max_element(degrees_.begin(), degrees_.end()) -
                                 degrees_.begin());
  }
  uint32_t height() const { return units_.empty() ? 0 : units_.back().height; }

  GroupArrangement Take() {
    GroupArrangement arrangement;
    arrangement.height = height();
    arrangement.slot_exponent = units_.empty() ? 0 : units_.back().exponent;
    if (SlotsFit(arrangement.slot_exponent)) arrangement.slots = Slots();
    arrangement.parents = std::move(parents_);
    return arrangement;
  }

 private:
  // What a group is to the one around it.
  struct Unit {
    uint32_t exponent = 0, height = 0;
    uint32_t first_rank = 0;
  };

  Unit UnitOf(uint32_t part) const {
    if (part >= groups_.rank_count) return units_[part - groups_.rank_count];
    return {.exponent = 0, .height = 0, .first_rank = part};
  }

  Unit FillInOrder(absl::Span<const uint32_t> ranks) {
    Unit unit = {.exponent = DigitsFor(ranks.size(), width_), .height = 0, .first_rank = ranks[0]};
    heights_.assign(ranks.size(), 0);
    for (uint64_t slot = 1; slot < ranks.size(); ++slot) {
      const uint64_t parent = KnomialParent(slot, width_);
      heights_[slot] = heights_[parent] + 1;
      unit.height = std::max(unit.height, heights_[slot]);
      offsets_[ranks[slot]] = slot;
      parents_[ranks[slot]] = static_cast<int32_t>(ranks[parent]);
      ++degrees_[ranks[parent]];
    }
    return unit;
  }

  bool PlaceParts(const NestedGroups::Group& group, Unit& unit, uint32_t degree_limit,
                  uint32_t root_limit) {
    const absl::Span<const uint32_t> parts = groups_.parts_of(group);
    blocks_.clear();
    for (const uint32_t part : parts) {
      const Unit inner = UnitOf(part);
      blocks_.push_back({.exponent = inner.exponent,
                         .height = inner.height,
                         .root_degree = degrees_[inner.first_rank],
                         .label = part});
    }
    // Of blocks that fit in the same chains the first goes farthest from slot 0: without limits
    // those that finish earliest, within limits those that leave least room for more children.
    const bool limited = degree_limit != kNoLimit;
    const auto larger = [limited](const Block& x, const Block& y) {
      if (x.exponent != y.exponent) return x.exponent > y.exponent;
      if (x.height != y.height) return x.height > y.height;
      return limited ? x.root_degree > y.root_degree : x.root_degree < y.root_degree;
    };
    if (!std::is_sorted(blocks_.begin(), blocks_.end(), larger)) {
      std::stable_sort(blocks_.begin(), blocks_.end(), larger);
    }
    unit.exponent = ChainPlacement::ExponentFor(blocks_, width_);
    const std::optional<uint32_t> height = Place(unit.exponent, degree_limit, root_limit);
    if (!height.has_value()) return false;
    unit.height = *height;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const BlockPlace& place = placement_.places()[i];
      const uint32_t first = UnitOf(blocks_[i].label).first_rank;
      offsets_[blocks_[i].label] = place.offset;
      if (place.parent == i) {
        unit.first_rank = first;
        continue;
      }
      const uint32_t parent = UnitOf(blocks_[place.parent].label).first_rank;
      parents_[first] = static_cast<int32_t>(parent);
      ++degrees_[parent];
    }
    return true;
  }

  std::optional<uint32_t> Place(uint32_t exponent, uint32_t degree_limit, uint32_t root_limit) {
    if (degree_limit == kNoLimit) return placement_.Place(blocks_, width_, exponent);
    const auto place = [&](uint32_t limit) {
      return placement_.PlaceLimited(blocks_, width_, exponent, degree_limit, limit);
    };
    if (root_limit < degree_limit) {
      if (const std::optional<uint32_t> capped = place(root_limit); capped.has_value())
        return capped;
    }
    // The least limit for slot 0 that costs no height.
    const std::optional<uint32_t> free = place(degree_limit);
    if (!free.has_value() || root_limit == degree_limit) return free;
    uint32_t low = root_limit + 1, high = degree_limit;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (place(middle) == free) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return place(high);
  }

  bool SlotsFit(uint32_t exponent) const {
    uint64_t slots = 1;
    for (uint32_t i = 0; i < exponent; ++i) {
      if (slots > (uint64_t{1} << 63) / width_) return false;
      slots *= width_;
    }
    return true;
  }

  // Adds the offsets of the groups around, outer before inner.
  std::vector<uint64_t> Slots() const {
    std::vector<uint64_t> slots = offsets_;
    for (size_t g = groups_.groups.size(); g-- > 0;) {
      for (const uint32_t part : groups_.parts_of(groups_.groups[g])) {
        slots[part] += slots[groups_.rank_count + g];
      }
    }
    slots.resize(groups_.rank_count);
    return slots;
  }

  const NestedGroups& groups_;
  const uint32_t width_;
  ChainPlacement placement_;
  std::vector<int32_t> parents_;   // [rank]
  std::vector<uint32_t> degrees_;  // [rank]
  std::vector<uint64_t> offsets_;  // [part] first slot, in the group around
  std::vector<Unit> units_;        // [group]
  std::vector<Block> blocks_;      // of the group at hand
  std::vector<uint32_t> heights_;  // of the ordered group at hand
};

}  // namespace

absl::StatusOr<GroupArrangement> ArrangeGroups(const NestedGroups& groups, uint32_t width,
                                               uint32_t degree_limit) {
  Arranger arranger(groups, width);
  arranger.Arrange(kNoLimit, kNoLimit);
  if (arranger.MostDegree() <= degree_limit) return arranger.Take();

  const uint32_t most = arranger.MostDegree(), rank = arranger.RankOfMostDegree();
  const uint32_t least_height = arranger.height();
  std::optional<GroupArrangement> best;
  for (uint32_t inner = degree_limit;; inner -= std::max(1U, inner / 4)) {
    if (arranger.Arrange(degree_limit, inner) && arranger.MostDegree() <= degree_limit &&
        (!best.has_value() || arranger.height() < best->height)) {
      best = arranger.Take();
      best->is_least = best->height == least_height;
    }
    if (inner == 0 || (best.has_value() && best->is_least)) break;
  }
  if (best.has_value()) return *std::move(best);
  return absl::ResourceExhaustedError(absl::StrCat(
      "rank ", rank, " would have ", most, " children, its NIC serves at most ", degree_limit,
      ", and no other arrangement of width ", width, " was found; ask for a smaller width"));
}

}  // namespace coppice
