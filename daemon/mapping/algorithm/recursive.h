// Recursive bisection mapping (Hoefler 2011, section 3.2, algorithm 2).
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_RECURSIVE_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_RECURSIVE_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// "recursive": pattern and fabric are cut in two again and again, half onto half.
const MappingAlgorithm& RecursiveAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_RECURSIVE_H_
