#include "daemon/tree/flat_groups.h"

#include <algorithm>

namespace coppice {

bool FlatGroups::Find(const NestedGroups& groups, uint32_t width, uint32_t degree_limit) {
  units_.resize(groups.groups.size());
  roots_.resize(groups.groups.size());
  for (size_t g = 0; g < groups.groups.size(); ++g) {
    const NestedGroups::Group& group = groups.groups[g];
    Unit& whole = units_[g];
    if (group.ordered) {
      const uint32_t ranks = group.end - group.begin;
      if (ranks > width) return false;
      whole = {.exponent = ranks > 1 ? 1U : 0U,
               .height = ranks > 1 ? 1U : 0U,
               .root_degree = ranks - 1,
               .first_rank = groups.parts[group.begin]};
    } else if (!Close(groups, group, width, whole)) {
      return false;
    }
    if (whole.root_degree > degree_limit) return false;
    roots_[g] = whole.first_rank;
  }
  return true;
}

bool FlatGroups::Close(const NestedGroups& groups, const NestedGroups::Group& group, uint32_t width,
                       Unit& whole) {
  const absl::Span<const uint32_t> parts = groups.parts_of(group);
  Unit deepest = UnitOf(groups, parts[0]);
  Unit last = deepest;  // in the order of placement, the first of those alike
  uint32_t deepest_parts = 0, least = deepest.exponent, most = deepest.exponent;
  count_.assign(std::max<size_t>(count_.size(), 1), 0);
  for (const uint32_t part : parts) {
    const Unit unit = UnitOf(groups, part);
    if (unit.exponent >= count_.size()) count_.resize(unit.exponent + 1, 0);
    ++count_[unit.exponent];
    least = std::min(least, unit.exponent);
    most = std::max(most, unit.exponent);
    if (unit.height > deepest.height) {
      deepest = unit;
      deepest_parts = 0;
    }
    deepest_parts += unit.height == deepest.height ? 1 : 0;
    if (unit.exponent != last.exponent ? unit.exponent < last.exponent
        : unit.height != last.height   ? unit.height < last.height
                                       : unit.root_degree > last.root_degree) {
      last = unit;
    }
  }
  const uint32_t exponent = ExponentFor(least, most, width);
  const Unit& root = deepest_parts == 1 ? deepest : last;
  const uint32_t root_level = deepest_parts == 1 ? root.exponent : least;
  if (!FitsOneDigit(parts.size(), exponent, least, root_level, width)) return false;
  whole = {.exponent = exponent,
           .height = deepest.height + (deepest_parts == 1 ? 0 : 1),
           .root_degree = root.root_degree + static_cast<uint32_t>(parts.size()) - 1,
           .first_rank = root.first_rank};
  return true;
}

// Counts the open chains of one non-zero digit, as the placement of `parts` parts into k^exponent
// slots opens and closes them; slot 0's chain is closed at `root_level`.
bool FlatGroups::FitsOneDigit(uint64_t parts, uint32_t exponent, uint32_t least,
                              uint32_t root_level, uint32_t width) const {
  uint64_t chains = 0;
  bool two_digits = false;  // a chain of two is open
  for (uint32_t level = exponent; level-- > least;) {
    const uint64_t root = level >= root_level ? 1 : 0;
    const uint64_t kept = std::min(chains, parts - root);
    const uint64_t fresh = std::min<uint64_t>(parts - root - kept, root * (width - 1));
    two_digits = root + kept + fresh < parts && (kept > 0 || two_digits);
    chains = kept + fresh;
    if (level >= count_.size() || count_[level] == 0) continue;
    const uint64_t taken = count_[level] - (level == root_level ? 1 : 0);
    if (two_digits || chains < taken) return false;
    chains -= taken;
    parts -= count_[level];
  }
  return parts == 0;
}

// Least n with k^n >= the sum of the blocks that count_ tells.
uint32_t FlatGroups::ExponentFor(uint32_t least, uint32_t most, uint32_t width) const {
  uint64_t sum = 0;
  uint32_t exponent = least;
  for (; exponent <= most; ++exponent) {
    if (exponent > least) sum = (sum - 1) / width + 1;
    sum += count_[exponent];
  }
  --exponent;
  for (; sum > 1; ++exponent) sum = (sum - 1) / width + 1;
  return exponent;
}

void FlatGroups::Parents(const NestedGroups& groups, std::vector<int32_t>& parents) const {
  parents.assign(groups.rank_count, -1);
  for (size_t g = 0; g < groups.groups.size(); ++g) {
    for (const uint32_t part : groups.parts_of(groups.groups[g])) {
      const uint32_t first = UnitOf(groups, part).first_rank;
      if (first != roots_[g]) parents[first] = static_cast<int32_t>(roots_[g]);
    }
  }
}

}  // namespace coppice
