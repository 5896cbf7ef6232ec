// Hierarchical k-nomial trees over nested groups (Chen 2024, 3.3, algorithms 2 and 3): who is whose
// parent when every group owns an aligned block of slots and a slot's parent is the k-nomial one.
//
//   k = 2, groups a of 3, b of 2, c of 2:   slot 0 1 | 2 3 | 4 5 6 7     occupied height 2
//                                                b b | c c | a a a .     (the paper's greedy: 3)
//
// The rule. A group of ranks that are ordered (those of one host) has the least power of k slots
// and fills them in order. A group of groups has the least power of k >= the sum of its parts'
// blocks; its parts stand on aligned disjoint blocks anywhere in it, and no slot is occupied whose
// k-nomial parent is not. A single rank is a group of one slot. Then every rank but its group's
// first has its parent in its own group.
//
// What is least. Without a degree limit that binds, the occupied height (most non-zero base-k
// digits of an occupied slot) is the least over all arrangements within the rule, at all nesting
// levels together: what a group costs outside depends on its block's size, which is fixed, and its
// inner height only, and never falls when that rises; so the least inside first, then the least
// outside (chain_placement.h), is the least. Where a rank would exceed the limit the arrangement is
// sought again within it: the result keeps the limit; it is least if it reaches the height without
// limit, else it is the least that was found (is_least = false): a trial of every placement of
// small lists under every limit finds it higher than least in fewer than 0.2 % of cases, and never
// misses that there is one.
//
// Knows neither fabric nor endpoints.
#ifndef COPPICE_DAEMON_TREE_GROUP_SLOTS_H_
#define COPPICE_DAEMON_TREE_GROUP_SLOTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace coppice {

// Groups in groups. A part is a rank (below rank_count) or group (part - rank_count).
struct NestedGroups {
  struct Group {
    uint32_t begin = 0, end = 0;  // into parts; not empty
    bool ordered = false;         // all parts are ranks, and fill the block in this order
  };
  uint32_t rank_count = 0;
  std::vector<Group> groups;    // inner before outer, the last is the whole; none: a single rank
  std::vector<uint32_t> parts;  // every rank and every group but the last exactly once

  absl::Span<const uint32_t> parts_of(const Group& group) const {
    return absl::MakeConstSpan(parts).subspan(group.begin, group.end - group.begin);
  }
};

struct GroupArrangement {
  std::vector<int32_t> parents;  // [rank], -1 for the root
  std::vector<uint64_t> slots;   // [rank]; empty if the whole needs 2^63 slots or more
  uint32_t height = 0;           // occupied height
  uint32_t slot_exponent = 0;    // n: the whole has k^n slots
  bool is_least = true;          // false: a degree limit binds, and a lower one may exist
};

// `width` >= 2. RESOURCE_EXHAUSTED: no arrangement within `degree_limit` was found; names the rank
// with the most children in the arrangement without limit. O(ranks * n) without a binding limit.
absl::StatusOr<GroupArrangement> ArrangeGroups(const NestedGroups& groups, uint32_t width,
                                               uint32_t degree_limit);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_GROUP_SLOTS_H_
