// "multisection": the pattern is cut along the fabric's own levels.
//
//                 all ranks                    root: as many parts as there are pods
//             /       |       \                pod: as many parts as it has switches
//          pod 0    pod 1    pod 2             switch: as many parts as it has nodes
//          / | \     / \      / | \            node: a part for each place
//
// C. Schulz and J. L. Traeff, "Better process mapping and sparse quadratic assignment", SEA 2017
// (hierarchical multisection); M. Kirchbach, C. Schulz, J. L. Traeff, "Better process mapping and
// sparse quadratic assignment", JEA 2020 (imbalance per level). Cuts are METIS's, refined on all
// levels; groups come from any distances (search/groups.h), so that it works on every fabric; the
// result is refined by the mapping's cost itself where places take many ranks.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_MULTISECTION_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_MULTISECTION_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// O(pairs * levels) a try, about.
const MappingAlgorithm& MultisectionAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_MULTISECTION_H_
