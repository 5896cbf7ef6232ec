#include "daemon/tree/group_slots.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "daemon/tree/chain_placement.h"
#include "daemon/tree/type1.h"

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

  uint32_t MostDegree() const { return *absl::c_max_element(degrees_); }
  uint32_t RankOfMostDegree() const {
    return static_cast<uint32_t>(absl::c_max_element(degrees_) - degrees_.begin());
  }
  uint32_t height() const { return units_.empty() ? 0 : units_.back().height; }

  GroupArrangement Take() {
    GroupArrangement arrangement;
    arrangement.height = height();
    arrangement.slot_exponent = units_.empty() ? 0 : units_.back().exponent;
    const bool fits = SlotsOf(width_, arrangement.slot_exponent) <= uint64_t{1} << 63;
    if (fits) arrangement.slots = Slots();
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
    if (!absl::c_is_sorted(blocks_, larger)) {
      absl::c_stable_sort(blocks_, larger);
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

namespace {

// Counts the open chains of one non-zero digit, as the placement of `parts` parts into k^exponent
// slots opens and closes them; slot 0's chain is closed at `root_level`.
bool FitsOneDigit(absl::Span<const uint32_t> count, uint64_t parts, uint32_t exponent,
                  uint32_t least, uint32_t root_level, uint32_t width) {
  uint64_t chains = 0;
  bool two_digits = false;  // a chain of two is open
  for (uint32_t level = exponent; level-- > least;) {
    const uint64_t root = level >= root_level ? 1 : 0;
    const uint64_t kept = std::min(chains, parts - root);
    const uint64_t fresh = std::min<uint64_t>(parts - root - kept, root * (width - 1));
    two_digits = root + kept + fresh < parts && (kept > 0 || two_digits);
    chains = kept + fresh;
    if (level >= count.size() || count[level] == 0) continue;
    const uint64_t taken = count[level] - (level == root_level ? 1 : 0);
    if (two_digits || chains < taken) return false;
    chains -= taken;
    parts -= count[level];
  }
  return parts == 0;
}

// Least n with k^n >= the sum of the blocks that `count` tells.
uint32_t ExponentFor(absl::Span<const uint32_t> count, uint32_t least, uint32_t most,
                     uint32_t width) {
  uint64_t sum = 0;
  uint32_t exponent = least;
  for (; exponent <= most; ++exponent) {
    if (exponent > least) sum = (sum - 1) / width + 1;
    sum += count[exponent];
  }
  --exponent;
  for (; sum > 1; ++exponent) sum = (sum - 1) / width + 1;
  return exponent;
}

}  // namespace

FlatGroups::FlatGroups(const NestedGroups& groups)
    : groups_(groups),
      around_(groups.groups.size()),
      parts_(groups.groups.size() + 1),
      units_(groups.groups.size()),
      roots_(groups.groups.size()) {
  has_ranks_only_.reserve(groups.groups.size());
  for (uint32_t g = 0; g < groups.groups.size(); ++g) {
    bool ranks_only = true;
    around_[g] = static_cast<uint32_t>(groups.groups.size());  // of the whole: none
    for (const uint32_t part : groups.parts_of(groups.groups[g])) {
      if (part < groups.rank_count) continue;
      ranks_only = false;
      around_[part - groups.rank_count] = g;
    }
    has_ranks_only_.push_back(ranks_only);
    if (ranks_only) {
      const NestedGroups::Group& group = groups.groups[g];
      most_ranks_ = std::max(most_ranks_, group.end - group.begin);
    } else {
      composed_.push_back(g);
    }
  }
}

bool FlatGroups::Find(uint32_t width, uint32_t degree_limit) {
  const bool ranks_fit = most_ranks_ <= width && most_ranks_ <= degree_limit + uint64_t{1};
  if (!ranks_fit || !ranks_are_found_) {
    ranks_are_found_ = false;
    for (uint32_t g = 0; g < groups_.groups.size(); ++g) {
      if (!FindGroup(g, width, degree_limit)) return false;
    }
    ranks_are_found_ = ranks_fit;
    return true;
  }
  return absl::c_all_of(composed_, [&](uint32_t g) { return FindGroup(g, width, degree_limit); });
}

bool FlatGroups::FindGroup(uint32_t g, uint32_t width, uint32_t degree_limit) {
  const NestedGroups::Group& group = groups_.groups[g];
  const uint32_t count = group.end - group.begin;
  Unit whole;
  if (has_ranks_only_[g] && count <= width) {  // ordered or not
    const uint32_t levels = count > 1 ? 1 : 0;
    whole = {levels, levels, count - 1, groups_.parts[group.begin]};
  } else if (group.ordered) {
    return false;
  } else {
    Parts& parts = parts_[g];
    if (!parts.is_valid) Look(group, parts);
    const bool one_deepest = parts.deepest_parts == 1;
    const Unit& root = one_deepest ? parts.deepest : parts.last;
    const uint32_t exponent = ExponentFor(parts.count, parts.least, parts.most, width);
    if (!FitsOneDigit(parts.count, count, exponent, parts.least,
                      one_deepest ? root.exponent : parts.least, width)) {
      return false;
    }
    whole = {exponent, parts.deepest.height + (one_deepest ? 0 : 1), root.root_degree + count - 1,
             root.first_rank};
  }
  if (whole.root_degree > degree_limit) return false;
  if (whole == units_[g]) return true;
  units_[g] = whole;
  roots_[g] = whole.first_rank;
  parts_[around_[g]].is_valid = false;
  return true;
}

void FlatGroups::Look(const NestedGroups::Group& group, Parts& seen) const {
  const absl::Span<const uint32_t> parts = groups_.parts_of(group);
  seen.deepest = seen.last = UnitOf(parts[0]);
  seen.deepest_parts = 0;
  seen.least = seen.most = seen.deepest.exponent;
  seen.count.assign(1, 0);
  for (const uint32_t part : parts) {
    const Unit unit = UnitOf(part);
    if (unit.exponent >= seen.count.size()) seen.count.resize(unit.exponent + 1, 0);
    ++seen.count[unit.exponent];
    seen.least = std::min(seen.least, unit.exponent);
    seen.most = std::max(seen.most, unit.exponent);
    if (unit.height > seen.deepest.height) {
      seen.deepest = unit;
      seen.deepest_parts = 0;
    }
    seen.deepest_parts += unit.height == seen.deepest.height ? 1 : 0;
    if (unit.exponent != seen.last.exponent ? unit.exponent < seen.last.exponent
        : unit.height != seen.last.height   ? unit.height < seen.last.height
                                            : unit.root_degree > seen.last.root_degree) {
      seen.last = unit;
    }
  }
  seen.is_valid = true;
}

void FlatGroups::Parents(std::vector<int32_t>& parents) const {
  parents.assign(groups_.rank_count, -1);
  for (size_t g = 0; g < groups_.groups.size(); ++g) {
    for (const uint32_t part : groups_.parts_of(groups_.groups[g])) {
      const uint32_t first = UnitOf(part).first_rank;
      if (first != roots_[g]) parents[first] = static_cast<int32_t>(roots_[g]);
    }
  }
}

}  // namespace coppice
