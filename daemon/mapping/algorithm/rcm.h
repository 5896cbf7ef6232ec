// Mapping by graph similarity (Hoefler 2011, section 3.3).
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_RCM_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_RCM_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// "rcm": reverse Cuthill-McKee orders of the pattern and of the fabric, laid on each other.
const MappingAlgorithm& RcmAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_RCM_H_
