#include "daemon/tree/flat_groups.h"

#include <algorithm>

namespace coppice {
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
  return std::all_of(composed_.begin(), composed_.end(),
                     [&](uint32_t g) { return FindGroup(g, width, degree_limit); });
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
