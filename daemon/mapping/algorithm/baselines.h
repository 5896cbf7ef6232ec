// What everybody compares with: orders that know the places and nothing of the pattern.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_BASELINES_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_BASELINES_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// "identity": the start, as it is: without one the present order.
const MappingAlgorithm& IdentityAlgorithm();
// "block": fills place after place, in the order of the places.
const MappingAlgorithm& BlockAlgorithm();
// "round-robin": one rank on every place in turn, as long as it has room.
const MappingAlgorithm& RoundRobinAlgorithm();
// "random": the slots shuffled by the seed.
const MappingAlgorithm& RandomAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_BASELINES_H_
