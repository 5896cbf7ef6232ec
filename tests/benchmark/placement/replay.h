// A machine's life under one rule of placement: jobs come and go in an order that depends on the
// seed alone, so that all rules see the same jobs at the same fill of the machine.
#ifndef COPPICE_TESTS_BENCHMARK_PLACEMENT_REPLAY_H_
#define COPPICE_TESTS_BENCHMARK_PLACEMENT_REPLAY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/placement/placement_index.h"
#include "daemon/placement/placement_request.h"

namespace coppice {

struct ReplayOptions {
  uint32_t jobs = 1000;
  uint64_t seed = 1;
  double fill = 0.9;            // of the hosts that jobs hold once the machine is full
  uint32_t largest_share = 4;   // jobs have up to one in so many of the hosts
  uint32_t measure_every = 50;  // jobs between measures of congestion; 0: never
};

struct ReplayResult {
  double fragmentation = 0;  // mean over jobs: leaf switches over the least on the empty machine
  double pods = 0;           // mean over jobs
  double distance = 0;       // mean over jobs of the mean distance between their hosts
  // Means over the measures. With every job's ranks in the order that the mapping engine finds:
  double congestion =
      0;               // sum over jobs of the fullest channel on their routes, by all jobs' bytes
  double own = 0;      // the same, each job's bytes alone
  double fullest = 0;  // the fullest channel of all
};

// Hosts for a job of so many, which are free.
using PlacementRule =
    std::function<absl::StatusOr<std::vector<HostIndex>>(const Occupancy& occupancy, uint32_t)>;

// Errors are the rule's and the mapping engine's.
absl::StatusOr<ReplayResult> Replay(const Snapshot& snapshot, const PlacementIndex& index,
                                    const PlacementRule& rule, const ReplayOptions& options);

}  // namespace coppice

#endif  // COPPICE_TESTS_BENCHMARK_PLACEMENT_REPLAY_H_
