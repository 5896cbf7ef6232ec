// One postal tree over a communicator's groups, for one choice of the level that counts as near:
//
//   level near      the parts of a near-and-far schedule: their units are reached from within
//   level near + 1  one such schedule for each group
//   above           the groups' first units reach each other (leaders), one schedule a level
//
//   near = leaf switch:   [ (a b c) (d e) (f g) ] [ (h i j) (k l m) ]    two pods
//                            near    far      leaders
//
// What is below `near` is treated as alike. Levels that a NIC's degree does not suffice for are
// treated as one. Groups with equal schedules are interchangeable, and a node sends its copies in
// order of node number: so of equal groups those that are served in turn, and before others, get
// the lower ranks.
//
// Knows neither fabric nor costs beyond the groups' constants.
#ifndef COPPICE_DAEMON_TREE_POSTAL_SHAPE_H_
#define COPPICE_DAEMON_TREE_POSTAL_SHAPE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/tree/postal_groups.h"

namespace coppice {

// [rank] parent, -1 for the root. `near` < groups.levels.size(); `degree` >= 2 and more than
// groups.most_in_unit. At least two ranks. O(P log P) times a dozen, groups alike scheduled once.
std::vector<int32_t> PostalParents(const PostalGroups& groups, size_t near, uint32_t degree);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_POSTAL_SHAPE_H_
