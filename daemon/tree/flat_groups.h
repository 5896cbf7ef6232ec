// The usual outcome of arranging groups (group_slots.h), recognised without arranging: in every
// group one part's first rank serves the first ranks of all other parts. Then the width no longer
// shows in the tree, so a planner that compares widths builds and judges it once.
//
//   leaf switches a b c | d | e f     a --+-- b, c           wherever k chains of one non-zero
//                                         +-- d              digit suffice for all parts
//                                         +-- e --- f
//
// A group is flat if at every level that parts are placed on, the open chains of one non-zero digit
// suffice and none of two is open: then no part takes another chain (chain_placement.h, whose rule
// also says who stands at slot 0: the part that is deepest alone, else the last in its order). A
// host of m ranks is flat if m <= k.
//
// Knows neither fabric nor endpoints.
#ifndef COPPICE_DAEMON_TREE_FLAT_GROUPS_H_
#define COPPICE_DAEMON_TREE_FLAT_GROUPS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/tree/group_slots.h"

namespace coppice {

// Of one communicator, which must outlive it; asked for many widths. Not thread-safe.
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

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_FLAT_GROUPS_H_
