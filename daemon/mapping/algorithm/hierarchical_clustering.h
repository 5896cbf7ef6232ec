// The hierarchical clustering map (Wang 2015, 4.5).
#ifndef COPPICE_DAEMON_MAPPING_ALGORITHM_HIERARCHICAL_CLUSTERING_H_
#define COPPICE_DAEMON_MAPPING_ALGORITHM_HIERARCHICAL_CLUSTERING_H_

#include "daemon/mapping/algorithm.h"

namespace coppice {

// "hierarchical-clustering": cp-nsc for one level of switches at a time, from the root down.
const MappingAlgorithm& HierarchicalClusteringAlgorithm();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_ALGORITHM_HIERARCHICAL_CLUSTERING_H_
