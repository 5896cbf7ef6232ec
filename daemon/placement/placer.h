// Chooses hosts for a job: the answer with the least cost that meets every constraint.
//
// Stage one takes the tightest set of hosts; with a pattern, stage two orders its ranks (Baranov et
// al. 2022, GraphHunter: minimum cut, then mapping).
#ifndef COPPICE_DAEMON_PLACEMENT_PLACER_H_
#define COPPICE_DAEMON_PLACEMENT_PLACER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/mapping/search_control.h"
#include "daemon/placement/placement_request.h"

namespace coppice {

class PlacementIndex;  // placement_index.h: what a fabric tells once for all placements on it

struct PlacementPlan {
  std::vector<HostIndex> hosts;       // in the order in which ranks should be given to them
  std::vector<uint32_t> permutation;  // with a pattern: [rank] position in hosts * ranks_per_host
  PlacementMeasures measures;
  bool is_optimal = false;  // proven; false: heuristic
  std::string reason;       // in words: what decided, what stood in the way
};

// INVALID_ARGUMENT: constraints that contradict each other whatever is free (names both).
// RESOURCE_EXHAUSTED: too few hosts are free, or a constraint leaves too few (names it, and what it
// leaves). FAILED_PRECONDITION: a host to include is held, out or not a candidate (names it).
// Deterministic for equal arguments unless `control` stops a search with a pattern. Thread-safe.
absl::StatusOr<PlacementPlan> Place(const Snapshot& snapshot, const PlacementIndex& index,
                                    const Occupancy& occupancy, const PlacementRequest& request,
                                    const SearchControl& control);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PLACER_H_
