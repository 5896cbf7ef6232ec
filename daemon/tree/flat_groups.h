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

// Reusable: keeps its memory between calls. Not thread-safe.
class FlatGroups {
 public:
  // True: ArrangeGroups(groups, width, degree_limit) is flat, and roots() and Parents() are its.
  // False says nothing. O(parts), width >= 2.
  bool Find(const NestedGroups& groups, uint32_t width, uint32_t degree_limit);

  absl::Span<const uint32_t> roots() const { return roots_; }  // [group] rank that serves it
  void Parents(const NestedGroups& groups, std::vector<int32_t>& parents) const;  // [rank]

 private:
  struct Unit {  // a part, seen from the group around
    uint32_t exponent = 0, height = 0, root_degree = 0, first_rank = 0;
  };
  Unit UnitOf(const NestedGroups& groups, uint32_t part) const {
    if (part < groups.rank_count) return {.first_rank = part};
    return units_[part - groups.rank_count];
  }
  bool Close(const NestedGroups& groups, const NestedGroups::Group& group, uint32_t width,
             Unit& whole);
  bool FitsOneDigit(uint64_t parts, uint32_t exponent, uint32_t least, uint32_t root_level,
                    uint32_t width) const;
  uint32_t ExponentFor(uint32_t least, uint32_t most, uint32_t width) const;

  std::vector<Unit> units_;      // [group]
  std::vector<uint32_t> roots_;  // [group]
  std::vector<uint32_t> count_;  // [exponent] parts of the group at hand
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_FLAT_GROUPS_H_
