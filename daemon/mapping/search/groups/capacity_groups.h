// The places of a fabric as a tree of groups that are joined by many gigabits inside and by few to
// the outside: where congestion is decided is where the cables are few, not where they are long.
//
//     [ leaf == spines == leaf ]       one group: trunks of 288 Gb/s
//          |             |
//          | 32          | 32          what joins it to the others
//       [ leaf ]       [ leaf ]
//
// Distances do not tell: all four leaf switches may be equally far from each other.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_GROUPS_CAPACITY_GROUPS_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_GROUPS_CAPACITY_GROUPS_H_

#include <cstdint>
#include <vector>

#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/search/groups/groups.h"

namespace coppice {

// Switches are joined two groups at a time, those first that have the widest trunks between them;
// trunks to one group add up. A group is one of the tree's where the trunk that joined it last is
// wider, by a quarter at least, than the one that joins it to others. Below are the leaf switches.
// Groups of one parent are numbered from the roomiest. `problem` has a fabric. O(cables * log
// (switches)), about.
PlaceGroups GroupByCapacity(const MappingProblem& problem);

// The groups of GroupByCapacity alone, before the leaf switches: [level][switch] a label, the
// widest groups first. Empty where all trunks are alike (fat trees, tori).
std::vector<std::vector<uint32_t>> CapacityLevels(const MappingProblem& problem);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_GROUPS_CAPACITY_GROUPS_H_
