// Congestion-aware refinement over the real routes.
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_CONGESTION_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_CONGESTION_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// "congestion": improves any start by exchanging slots, guided by the bytes of every channel.
const MappingAlgorithm& CongestionAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_CONGESTION_H_
