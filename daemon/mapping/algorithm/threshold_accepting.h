// Threshold accepting (Hoefler 2011, section 3.5; Dueck and Scheuer 1990).
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_THRESHOLD_ACCEPTING_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_THRESHOLD_ACCEPTING_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// "threshold-accepting": exchanges two random positions at a time, any start.
const MappingAlgorithm& ThresholdAcceptingAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_THRESHOLD_ACCEPTING_H_
