// k-ary trees (Chen 2024, 3.2.1, definition 7): ranks numbered breadth first, every inner node but
// the last with k children. Balanced, but blind to the fabric.
//
//   k = 2:   0 --+-- 1 --+-- 3
//                |       +-- 4        parent(r) = (r - 1) / k
//                +-- 2 ----- 5
//
// O(P).
#include "daemon/tree/type1.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/tree/type1_ranks.h"

namespace coppice {
absl::StatusOr<AggregationTree> BuildKary(const Fabric& fabric, Members members, uint32_t width,
                                          uint32_t nic_degree) {
  AggregationTree tree;
  ASSIGN_OR_RETURN(tree, BareTypeITree(fabric, members, TreeBuilder::kKary, width));
  for (uint32_t rank = 1; rank < tree.rank_count; ++rank) {
    tree.parents[rank] = static_cast<int32_t>((rank - 1) / width);
  }
  RETURN_IF_ERROR(CheckNicDegree(tree, nic_degree));
  return tree;
}

// k-nomial trees (Chen 2024, 3.2.2, definition 8, algorithm 1): T_n is k trees T_(n-1), the roots
// of k-1 of them below the root of the first. Ranks are numbered depth first.
//
//   k = 2, n = 3:   0 --+-- 4 --+-- 6 --- 7
//                       |       +-- 5            parent(r) = r with its lowest non-zero base-k
//                       +-- 2 ----- 3            digit set to 0; children of r = r + d * k^j below
//                       +-- 1                    that digit, d = 1..k-1
//
//   height = most non-zero digits of a rank
//
// Unbalanced: while the lower levels still work, the upper ones already take packets. O(P).

absl::StatusOr<AggregationTree> BuildKnomial(const Fabric& fabric, Members members, uint32_t width,
                                             uint32_t nic_degree) {
  AggregationTree tree;
  ASSIGN_OR_RETURN(tree, BareTypeITree(fabric, members, TreeBuilder::kKnomial, width));
  for (uint32_t rank = 1; rank < tree.rank_count; ++rank) {
    tree.parents[rank] = static_cast<int32_t>(KnomialParent(rank, width));
  }
  RETURN_IF_ERROR(CheckNicDegree(tree, nic_degree));
  return tree;
}

namespace {

// Collects ranks into groups from the hosts outwards. A unit is a part not yet inside another.
class GroupCollector {
 public:
  explicit GroupCollector(Members members) : members_(members) {
    nested_.rank_count = static_cast<uint32_t>(members.size());
    units_.reserve(members.size());
    for (uint32_t rank = 0; rank < members.size(); ++rank) {
      units_.push_back({.part = rank, .first_rank = rank});
    }
  }

  // Merges the units that `group_of` says are together.
  void Merge(absl::Span<const uint32_t> group_of, uint32_t group_count, bool ordered) {
    if (!SortByGroup(group_of, group_count)) return;
    merged_.clear();
    for (size_t begin = 0, end = 0; begin < keyed_.size(); begin = end) {
      for (end = begin; end < keyed_.size() && keyed_[end].first == keyed_[begin].first;) ++end;
      merged_.push_back(Close(begin, end, ordered));
    }
    const auto before = [](const Unit& a, const Unit& b) { return a.first_rank < b.first_rank; };
    if (!std::is_sorted(merged_.begin(), merged_.end(), before)) {
      std::sort(merged_.begin(), merged_.end(), before);
    }
    units_.swap(merged_);
  }

  // Merges whatever is left, so that the last group is the whole.
  NestedGroups Take() {
    if (units_.size() > 1) {
      keyed_.clear();
      for (uint32_t u = 0; u < units_.size(); ++u) keyed_.emplace_back(0, u);
      Close(0, keyed_.size(), /*ordered=*/false);
    }
    return std::move(nested_);
  }

 private:
  struct Unit {
    uint32_t part = 0;
    uint32_t first_rank = 0;  // its lowest
  };

  // keyed_ = (group, unit), units of a group together and in order, as they mostly stand already.
  // False: they stand so, and every group has but one.
  bool SortByGroup(absl::Span<const uint32_t> group_of, uint32_t group_count) {
    const auto group = [&](const Unit& unit) {
      return group_of[members_[unit.first_rank].value()];
    };
    keyed_.resize(units_.size());
    bool in_order = true, one_each = true;
    for (uint32_t u = 0; u < units_.size(); ++u) {
      keyed_[u] = {group(units_[u]), u};
      if (u == 0) continue;
      in_order = in_order && keyed_[u - 1].first <= keyed_[u].first;
      one_each = one_each && keyed_[u - 1].first < keyed_[u].first;
    }
    if (in_order) return !one_each;
    if (group_count / 8 > units_.size()) {
      std::sort(keyed_.begin(), keyed_.end());
      return true;
    }
    next_.assign(group_count + 1, 0);
    for (const Unit& unit : units_) ++next_[group(unit) + 1];
    for (uint32_t g = 0; g < group_count; ++g) next_[g + 1] += next_[g];
    for (uint32_t u = 0; u < units_.size(); ++u) {
      const uint32_t g = group(units_[u]);
      keyed_[next_[g]++] = {g, u};
    }
    return true;
  }

  // Makes one unit of the units in keyed_[begin, end).
  Unit Close(size_t begin, size_t end, bool ordered) {
    Unit unit = units_[keyed_[begin].second];
    if (end - begin == 1) return unit;
    NestedGroups::Group group;
    group.begin = static_cast<uint32_t>(nested_.parts.size());
    for (size_t i = begin; i < end; ++i) {
      nested_.parts.push_back(units_[keyed_[i].second].part);
    }
    group.end = static_cast<uint32_t>(nested_.parts.size());
    group.ordered = ordered;
    unit.part = nested_.rank_count + static_cast<uint32_t>(nested_.groups.size());
    nested_.groups.push_back(group);
    return unit;
  }

  Members members_;
  NestedGroups nested_;
  std::vector<Unit> units_, merged_;
  std::vector<std::pair<uint32_t, uint32_t>> keyed_;
  std::vector<uint32_t> next_;
};

}  // namespace

NestedGroups GroupMembers(const Hierarchy& hierarchy, Members members) {
  GroupCollector collector(members);
  for (size_t level = 0; level < hierarchy.levels.size(); ++level) {
    const Hierarchy::Level& groups = hierarchy.levels[level];
    collector.Merge(groups.group, groups.group_count, /*ordered=*/level == 0);
  }
  return collector.Take();
}

absl::StatusOr<AggregationTree> BuildHierarchical(const Fabric& fabric, const NestedGroups& groups,
                                                  Members members, uint32_t width,
                                                  uint32_t nic_degree) {
  AggregationTree tree;
  ASSIGN_OR_RETURN(tree, BareTypeITree(fabric, members, TreeBuilder::kHierarchical, width));
  if (tree.rank_count == 1) return tree;
  GroupArrangement arrangement;
  ASSIGN_OR_RETURN(arrangement, ArrangeGroups(groups, width, nic_degree));
  tree.parents = std::move(arrangement.parents);
  return tree;
}

}  // namespace coppice
