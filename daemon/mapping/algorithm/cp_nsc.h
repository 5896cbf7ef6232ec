// Communication pattern, normalised spectral clustering (Wang 2015, algorithm 1).
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_CP_NSC_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_CP_NSC_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// "cp-nsc": spectral clusters of ranks onto nodes; see the source file for picture and departures.
const MappingAlgorithm& CpNscAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_CP_NSC_H_
