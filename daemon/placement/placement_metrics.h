// Every measure of a set of hosts, whoever chose it: counted from the fabric and the occupancy
// alone, independent of the optimiser.
#ifndef COPPICE_DAEMON_PLACEMENT_PLACEMENT_METRICS_H_
#define COPPICE_DAEMON_PLACEMENT_PLACEMENT_METRICS_H_

#include <vector>

#include "absl/types/span.h"
#include "daemon/placement/placer.h"

namespace coppice {

// The measures as placement_cost.h defines them, without least_leaf_switches (the optimiser's),
// max_congestion and traffic (the mapping's); the cost is without traffic. `hosts` are distinct
// hosts with a leaf switch. O(leaf switches squared + routes of job_links.h + hosts of the leaf
// switches; with trees, used leaf classes times classes of switches).
PlacementMeasures MeasurePlacement(const Snapshot& snapshot, const PlacementIndex& index,
                                   const Occupancy& occupancy, const PlacementRequest& request,
                                   absl::Span<const HostIndex> hosts);

// Of `leaves` (distinct) and one switch nearest to them all: how many have fewer entries left than
// `trees`. 0 without trees or known entries.
uint32_t SwitchesWithoutEntries(const Snapshot& snapshot, const PlacementIndex& index,
                                const Occupancy& occupancy, uint32_t trees,
                                absl::Span<const uint32_t> leaves);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PLACEMENT_METRICS_H_
