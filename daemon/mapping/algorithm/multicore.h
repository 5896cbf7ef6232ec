// Hosts of several ranks: partition first, then map the parts (Hoefler 2011, section 3.4).
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_MULTICORE_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_MULTICORE_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// "multicore": a part of the pattern for every place, then another method for the parts.
const MappingAlgorithm& MulticoreAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_MULTICORE_H_
