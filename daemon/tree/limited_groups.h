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
//
// Knows neither fabric nor endpoints.
#ifndef COPPICE_DAEMON_TREE_LIMITED_GROUPS_H_
#define COPPICE_DAEMON_TREE_LIMITED_GROUPS_H_

#include <cstdint>
#include <vector>

#include "daemon/tree/group_slots.h"

namespace coppice {

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

#endif  // COPPICE_DAEMON_TREE_LIMITED_GROUPS_H_
