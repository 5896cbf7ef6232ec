// The greedy mapping (Hoefler 2011, section 3.1, algorithm 1).
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_GREEDY_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_GREEDY_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// "greedy": the heaviest edge next, to the closest place with room over the idlest links.
const MappingAlgorithm& GreedyAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_GREEDY_H_
