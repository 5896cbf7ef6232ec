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
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/contended_metrics.h"

namespace coppice {

absl::StatusOr<AggregationTree> BareTypeITree(const Fabric& fabric, Members members,
                                              TreeBuilder builder, uint32_t width) {
  if (members.empty()) {
    return absl::InvalidArgumentError("a tree needs at least one member; name its endpoints");
  }
  if (width < 2 && members.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("width ", width, " of a ", ToString(builder),
                                                   " tree is too small; ask for 2 or more"));
  }
  AggregationTree tree;
  tree.type = TreeType::kTypeI;
  tree.builder = builder;
  tree.width = width;
  tree.rank_count = static_cast<uint32_t>(members.size());
  tree.parents.assign(members.size(), AggregationTree::kNoParent);
  tree.vertices.reserve(members.size());
  for (const EndpointIndex member : members) {
    if (member.value() >= fabric.endpoint_count()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "rank ", tree.vertices.size(), " is endpoint ", member.value(), ", but the fabric has ",
          fabric.endpoint_count(), "; name endpoints of this fabric"));
    }
    tree.vertices.push_back(fabric.Vertex(member));
  }
  return tree;
}

absl::Status CheckNicDegree(const AggregationTree& tree, uint32_t nic_degree) {
  const std::vector<uint32_t> children = ChildCounts(tree.parents);
  const auto most = absl::c_max_element(children);
  if (most == children.end() || *most <= nic_degree) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "rank ", most - children.begin(), " would have ", *most, " children, its NIC serves at most ",
      nic_degree, "; ask for a smaller width than ", tree.width));
}

uint32_t DigitsFor(uint64_t count, uint32_t width) {
  uint32_t digits = 0;
  for (uint64_t left = count; left > 1; left = (left - 1) / width + 1) ++digits;
  return digits;
}

uint64_t KnomialParent(uint64_t slot, uint32_t width) {
  uint64_t unit = 1;
  while (slot / unit % width == 0) unit *= width;
  return slot - slot / unit % width * unit;
}

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
  void Merge(absl::Span<const uint32_t> group_of, bool ordered) {
    if (!SortByGroup(group_of)) return;
    merged_.clear();
    for (size_t begin = 0, end = 0; begin < keyed_.size(); begin = end) {
      for (end = begin; end < keyed_.size() && keyed_[end].first == keyed_[begin].first;) ++end;
      merged_.push_back(Close(begin, end, ordered));
    }
    const auto before = [](const Unit& a, const Unit& b) { return a.first_rank < b.first_rank; };
    if (!absl::c_is_sorted(merged_, before)) {
      absl::c_sort(merged_, before);
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
  bool SortByGroup(absl::Span<const uint32_t> group_of) {
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
    absl::c_sort(keyed_);
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
};

}  // namespace

NestedGroups GroupMembers(const Hierarchy& hierarchy, Members members) {
  GroupCollector collector(members);
  for (size_t level = 0; level < hierarchy.levels.size(); ++level) {
    collector.Merge(hierarchy.levels[level].group, /*ordered=*/level == 0);
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

WidthInterval WidthCandidates(const CostProfile& profile, const TreeRequest& request,
                              uint32_t nic_degree) {
  if (request.width) return {*request.width, *request.width, *request.width};
  const auto members = static_cast<uint32_t>(request.members.size());
  const LevelCost level = BothWays(profile, TreeType::kTypeI, request);
  return WidthsWithin(level, members, 2 * profile.width_tolerance_us,
                      std::min(nic_degree, members - 1));
}

namespace {

bool NeedsLadder(const CostProfile& profile, const TreeRequest& request) {
  const size_t members = request.members.size();
  if (members > kMaxRanksForLadder) return false;
  const bool is_long = absl::c_any_of(
      request.sizes, [&](const SizeShare& share) { return share.bytes > profile.mtu_bytes; });
  return members <= kFewRanks || is_long ||
         QueuesMayMatter(profile, request, static_cast<uint32_t>(members), profile.port_gbps);
}

}  // namespace

std::vector<uint32_t> WidthsToTry(const CostProfile& profile, const TreeRequest& request,
                                  uint32_t nic_degree) {
  const WidthInterval interval = WidthCandidates(profile, request, nic_degree);
  std::vector<uint32_t> widths;
  for (uint64_t width = interval.min; width <= interval.max; ++width) {
    widths.push_back(static_cast<uint32_t>(width));
  }
  if (request.width || !NeedsLadder(profile, request)) return widths;
  const auto members = static_cast<uint32_t>(request.members.size());
  const LevelCost level = BothWays(profile, TreeType::kTypeI, request);
  const double most_us = 1.5 * LevelsUs(level, members, interval.best);
  for (const uint32_t width : {2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64}) {
    if (width > std::min(nic_degree, members - 1)) break;
    if (LevelsUs(level, members, width) <= most_us) widths.push_back(width);
  }
  absl::c_sort(widths);
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  return widths;
}

}  // namespace coppice
