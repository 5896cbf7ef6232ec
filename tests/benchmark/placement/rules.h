// The rules that Coppice's placement is compared with: who gets which free hosts.
#ifndef COPPICE_TESTS_BENCHMARK_PLACEMENT_RULES_H_
#define COPPICE_TESTS_BENCHMARK_PLACEMENT_RULES_H_

#include <cstdint>
#include <vector>

#include "daemon/fabric/snapshot.h"
#include "daemon/placement/placement_index.h"
#include "daemon/placement/placement_request.h"

namespace coppice {

// Each gives `count` of the free hosts, of which there are enough.

// The first ones by name.
std::vector<HostIndex> FirstFit(const PlacementIndex& index, const Occupancy& occupancy,
                                uint32_t count);

// Slurm's topology/tree, written anew from its documentation (slurm.schedmd.com/topology.html,
// "Tree Topology"): "identify the lowest level switch in the hierarchy that can satisfy a job's
// request and then allocate resources on its underlying leaf switches using a best-fit algorithm".
// Of several switches of that level the one with the fewest free hosts; then, until all are placed,
// the leaf switch with the fewest free hosts that has enough for all the rest, or, where none has,
// the one with the most. The switches above the leaf switches are the hierarchy's levels.
std::vector<HostIndex> SlurmTree(const Snapshot& snapshot, const PlacementIndex& index,
                                 const Occupancy& occupancy, uint32_t count);

}  // namespace coppice

#endif  // COPPICE_TESTS_BENCHMARK_PLACEMENT_RULES_H_
