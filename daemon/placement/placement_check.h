// The independent verifier of every placement: what must hold of its hosts whoever chose them.
#ifndef COPPICE_DAEMON_PLACEMENT_PLACEMENT_CHECK_H_
#define COPPICE_DAEMON_PLACEMENT_PLACEMENT_CHECK_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/placement/placement_request.h"

namespace coppice {

// INTERNAL, naming the constraint and a host: another number of hosts, one that is not the
// fabric's, taken twice, held, out, no candidate or to be avoided, one to include left out, hosts
// without a path between them, or a constraint that does not hold. Looks at the hierarchy itself,
// not at what the optimiser makes of it. O(endpoints + hosts).
absl::Status CheckPlacement(const Snapshot& snapshot, const Occupancy& occupancy,
                            const PlacementConstraints& constraints,
                            absl::Span<const HostIndex> hosts);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PLACEMENT_CHECK_H_
