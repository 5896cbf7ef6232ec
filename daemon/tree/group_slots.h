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
// What is least. The occupied height (most non-zero base-k digits of an occupied slot) is the least
// over all arrangements within the rule in which no rank exceeds the degree limit, at all nesting
// levels together. Without a limit that binds, what a group costs outside depends on its block's
// size, which is fixed, and its inner height only, and never falls when that rises; so the least
// inside first, then the least outside (chain_placement.h), is the least. Where a rank would exceed
// the limit, PlaceWithinLimit weighs a group's height against the children of its first rank, by an
// exact search that is bounded: is_least says whether the result is proven. It is for all lists of
// up to five hosts of up to eight ranks, of six of up to six, and for all nestings that the tests
// compare with every placement; random machines of up to 27,000 ranks left none unproven.
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
  bool is_least = true;          // false: a search was cut short, a lower one may exist
};

// `width` >= 2. RESOURCE_EXHAUSTED: no arrangement within `degree_limit` exists, or none was found
// before a search was cut short; the message says which, and names the rank with the most children
// in the arrangement without limit. O(ranks * n) without a binding limit, else with O(1,000,000)
// steps of chain_placement.h more, plus 1,000 for every later group unlike those before it.
absl::StatusOr<GroupArrangement> ArrangeGroups(const NestedGroups& groups, uint32_t width,
                                               uint32_t degree_limit);

// The usual outcome of arranging groups, recognised without arranging: in every group one part's
// first rank serves the first ranks of all other parts. Then the width no longer shows in the tree,
// so a planner that compares widths builds and judges it once. Of one communicator, whose groups
// must outlive it; asked for many widths. Not thread-safe.
//
//   leaf switches a b c | d | e f     a --+-- b, c           wherever k chains of one non-zero
//                                         +-- d              digit suffice for all parts
//                                         +-- e --- f
//
// A group is flat if at every level that parts are placed on, the open chains of one non-zero digit
// suffice and none of two is open: then no part takes another chain (chain_placement.h, whose rule
// also says who stands at slot 0: the part that is deepest alone, else the last in its order). A
// host of m ranks is flat if m <= k.
class FlatGroups {
 public:
  explicit FlatGroups(const NestedGroups& groups);

  // True: ArrangeGroups(groups, width, degree_limit) is flat, and roots() and Parents() are its.
  // False says nothing. width >= 2. O(groups) but for groups whose parts are not what they were at
  // the last width; of groups of groups alone once the width is that of the largest other group.
  bool Find(uint32_t width, uint32_t degree_limit);

  absl::Span<const uint32_t> roots() const { return roots_; }  // [group] rank that serves it
  void Parents(std::vector<int32_t>& parents) const;           // [rank]

 private:
  struct Unit {  // a part, seen from the group around
    uint32_t exponent = 0, height = 0, root_degree = 0, first_rank = 0;
    bool operator==(const Unit&) const = default;
  };
  struct Parts {         // of a group, as far as its shape depends on them
    Unit deepest, last;  // in the order of placement, the first of those alike
    uint32_t deepest_parts = 0, least = 0, most = 0;
    std::vector<uint32_t> count;  // [exponent]
    bool is_valid = false;        // still: no part has changed since
  };
  Unit UnitOf(uint32_t part) const {
    if (part < groups_.rank_count) return {.first_rank = part};
    return units_[part - groups_.rank_count];
  }
  bool FindGroup(uint32_t g, uint32_t width, uint32_t degree_limit);
  void Look(const NestedGroups::Group& group, Parts& parts) const;

  const NestedGroups& groups_;
  std::vector<bool> has_ranks_only_;  // [group]
  std::vector<uint32_t> composed_;    // the other groups, inner before outer
  uint32_t most_ranks_ = 0;           // of a group that has ranks only
  bool ranks_are_found_ = false;      // those groups' units are what any width from there on gives
  std::vector<uint32_t> around_;      // [group] the one that it is a part of
  std::vector<Parts> parts_;          // [group]
  std::vector<Unit> units_;           // [group]
  std::vector<uint32_t> roots_;       // [group]
};

// Nested groups on k-nomial slots (group_slots.h) when no rank may serve more than so many
// children: where each part stands in the group around it.
//
// What a group costs outside is its block's size, which is fixed, its inner height and the children
// that its first rank already has inside. So a group is known by its SHAPES: for every inner height
// the fewest children of its first rank, where fewer cost height:
//
//   k = 4, a leaf switch of 5 hosts of one rank      o------+       o--+--+
//   in 16 slots: height 1 with 4 children,           |      |       o  o  o
//   height 2 with 2                                  4 below        |
//                                                                   o
// Shapes are found inner groups first (chain_placement.h decides whether a height and a number of
// children can be kept), then a shape is chosen for each group, outer groups first: the lowest that
// leaves its first rank room for the children outside. Groups that are alike are solved once.
// Where the first slot of a part stands in the group around it.
struct PartPlace {
  uint32_t parent = 0;  // part whose first rank serves this one's; itself at slot 0
  uint32_t cost = 0;    // non-zero digits of `offset`
  uint64_t offset = 0;  // only meaningful if the group has less than 2^64 slots
};

struct LimitedPlaces {
  bool found = false;
  bool proven = false;        // found: the height is least; else: there is no arrangement at all
  std::vector<PartPlace> of;  // [part] of groups that are not ordered; of the others nothing
};

// `degree_limit` < 2^31. Every decision takes at most 20,000 steps, and at most 1,000 once all
// together have taken 1,000,000; `proven` is false if one was cut short by that, and then only.
LimitedPlaces PlaceWithinLimit(const NestedGroups& groups, uint32_t width, uint32_t degree_limit);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_GROUP_SLOTS_H_
