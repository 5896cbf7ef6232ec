// How placements are made and kept; part of the manager's options, which may change while it runs.
#ifndef COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_OPTIONS_H_
#define COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_OPTIONS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "daemon/placement/placement_request.h"

namespace coppice {

struct PlacementOptions {
  absl::Duration default_term = absl::Minutes(5);
  // Held at once: what a scheduler that never releases can take from others until terms end.
  uint32_t most_held = 10'000, most_held_per_owner = 5'000;
  PlacementObjective weights;  // of requests that give none; all 0: DefaultObjective()
};

// proto/coppice/v1/placements.proto
inline constexpr absl::Duration kShortestTerm = absl::Seconds(1);
inline constexpr absl::Duration kLongestTerm = absl::Hours(24);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_OPTIONS_H_
