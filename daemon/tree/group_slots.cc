#include "daemon/tree/group_slots.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/tree/chain_placement.h"
#include "daemon/tree/limited_groups.h"
#include "daemon/tree/type1_ranks.h"

namespace coppice {
namespace {

// Arranges one group after another, inner before outer. Neighbours are mostly alike: then the
// second is placed as the first.
class Arranger {
 public:
  Arranger(const NestedGroups& groups, uint32_t width) : groups_(groups), width_(width) {}

  // With the least height, or with the parts where `given` ([part]) says.
  void Arrange(std::vector<PartPlace> given) {
    const bool is_given = !given.empty();
    parents_.assign(groups_.rank_count, -1);
    degrees_.assign(groups_.rank_count, 0);
    places_ = std::move(given);
    places_.resize(groups_.rank_count + groups_.groups.size());
    units_.resize(groups_.groups.size());
    for (uint32_t g = 0; g < groups_.groups.size(); ++g) {
      const NestedGroups::Group& group = groups_.groups[g];
      if (group.ordered) {
        units_[g] = FillInOrder(groups_.parts_of(group));
        continue;
      }
      SetBlocks(group);
      if (!AreAlike(blocks_, placed_) || is_given != placed_are_given_) {
        exponent_ = ChainPlacement::ExponentFor(blocks_, width_);
        if (!is_given) placement_.Place(blocks_, width_, exponent_);
        placed_ = blocks_;
        placed_are_given_ = is_given;
      }
      if (!is_given) TakePlaces();
      units_[g] = JoinParts(group);
    }
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
      places_[ranks[slot]].offset = slot;
      parents_[ranks[slot]] = static_cast<int32_t>(ranks[parent]);
      ++degrees_[ranks[parent]];
    }
    return unit;
  }

  // In the order of placement. Of blocks that fit in the same chains the first goes farthest from
  // slot 0: the one that finishes earliest.
  void SetBlocks(const NestedGroups::Group& group) {
    blocks_.clear();
    for (const uint32_t part : groups_.parts_of(group)) {
      const Unit inner = UnitOf(part);
      blocks_.push_back({.exponent = inner.exponent,
                         .height = inner.height,
                         .root_degree = degrees_[inner.first_rank],
                         .label = part});
    }
    const auto larger = [](const Block& x, const Block& y) {
      if (x.exponent != y.exponent) return x.exponent > y.exponent;
      if (x.height != y.height) return x.height > y.height;
      return x.root_degree < y.root_degree;
    };
    if (!std::is_sorted(blocks_.begin(), blocks_.end(), larger)) {
      std::stable_sort(blocks_.begin(), blocks_.end(), larger);
    }
  }

  // In everything but label, so that one is placed as the other.
  static bool AreAlike(absl::Span<const Block> x, absl::Span<const Block> y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Block& a, const Block& b) {
      return a.exponent == b.exponent && a.height == b.height && a.root_degree == b.root_degree;
    });
  }

  void TakePlaces() {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const BlockPlace& place = placement_.places()[i];
      places_[blocks_[i].label] = {
          .parent = blocks_[place.parent].label, .cost = place.cost, .offset = place.offset};
    }
  }

  // Gives the parts' first ranks the parents that their places say.
  Unit JoinParts(const NestedGroups::Group& group) {
    Unit whole = {.exponent = exponent_, .height = 0, .first_rank = 0};
    for (const uint32_t part : groups_.parts_of(group)) {
      const PartPlace& place = places_[part];
      const Unit inner = UnitOf(part);
      whole.height = std::max(whole.height, place.cost + inner.height);
      if (place.parent == part) {
        whole.first_rank = inner.first_rank;
        continue;
      }
      const uint32_t parent = UnitOf(place.parent).first_rank;
      parents_[inner.first_rank] = static_cast<int32_t>(parent);
      ++degrees_[parent];
    }
    return whole;
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
    std::vector<uint64_t> slots;
    for (const PartPlace& place : places_) slots.push_back(place.offset);
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
  std::vector<PartPlace> places_;  // [part] in the group around
  std::vector<Unit> units_;        // [group]
  std::vector<Block> blocks_;      // of the group at hand
  std::vector<Block> placed_;      // of the group that placement_ and exponent_ are of
  bool placed_are_given_ = false;  // and are of exponent_ only
  uint32_t exponent_ = 0;
  std::vector<uint32_t> heights_;  // of the ordered group at hand
};

}  // namespace

absl::StatusOr<GroupArrangement> ArrangeGroups(const NestedGroups& groups, uint32_t width,
                                               uint32_t degree_limit) {
  Arranger arranger(groups, width);
  arranger.Arrange({});
  const uint32_t most = arranger.MostDegree();
  if (most <= degree_limit) return arranger.Take();

  LimitedPlaces limited = PlaceWithinLimit(groups, width, degree_limit);
  if (!limited.found) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "rank ", arranger.RankOfMostDegree(), " would have ", most,
        " children, its NIC serves at most ", degree_limit, ", and no other arrangement of width ",
        width, limited.proven ? " exists" : " was found", "; ask for another width"));
  }
  const uint32_t free_height = arranger.height();
  arranger.Arrange(std::move(limited.of));
  GroupArrangement arrangement = arranger.Take();
  arrangement.is_least = limited.proven || arrangement.height == free_height;
  return arrangement;
}

}  // namespace coppice
