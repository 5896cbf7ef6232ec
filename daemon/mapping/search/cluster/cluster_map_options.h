// What a user may set of Wang's mapping by clusters, under the paper's names, and what is said of
// it afterwards: the same for cp-nsc and for hierarchical clustering.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_CLUSTER_MAP_OPTIONS_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_CLUSTER_MAP_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/search/cluster/cluster_map.h"

namespace coppice {

// The parameters of algorithms that take these options, with Wang's presets where he names one.
std::vector<AlgorithmParameter> ClusterMapParameters();
// Of an algorithm that has them.
ClusterMapOptions ClusterMapOptionsOf(const MappingAlgorithm& algorithm,
                                      const AlgorithmOptions& options);

// RESOURCE_EXHAUSTED, naming the algorithm and both numbers: `ranks` ranks in so many clusters have
// more than kMostCoordinates numbers in their eigenvectors (1 GiB with what Lanczos needs).
inline constexpr size_t kMostCoordinates = 1 << 24;
inline constexpr uint32_t kPresetEigenvectors = 64;
absl::Status CheckEmbedding(const MappingAlgorithm& algorithm, const ClusterMapOptions& options,
                            uint32_t ranks, uint32_t clusters);

// What was placed how, and why.
std::string Describe(const ClusterMap& map, const ClusterMapOptions& options,
                     const NodeCores& nodes);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_CLUSTER_MAP_OPTIONS_H_
