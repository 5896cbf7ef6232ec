// Measured distances as they are asked for: of some hosts, page by page, and with estimates for the
// pairs that were not measured.
//
// An estimate is, for each number, the median of the measured pairs that are as many links apart in
// the present fabric. Knows no mapping: measured_places.h makes distances of it.
#ifndef COPPICE_DAEMON_MANAGER_DISTANCES_DISTANCE_LISTING_H_
#define COPPICE_DAEMON_MANAGER_DISTANCES_DISTANCE_LISTING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/manager/distances/distance_shelf.h"

namespace coppice {

// What a pair that far apart is taken to have.
struct LevelMedian {
  double latency_us = 0, latency_spread_us = 0;
  double bandwidth_gbps = 0, bandwidth_spread_gbps = 0;
  size_t pairs = 0;  // that it is the median of
};

// By links apart (node_levels.h), of all kept pairs whose hosts are in the fabric. O(kept).
std::map<uint32_t, LevelMedian> LevelMedians(const DistanceShelf& shelf, const Snapshot& snapshot);

struct DistanceQuery {
  static constexpr size_t kMostEstimated = 2048;  // hosts

  std::vector<std::string> hosts;  // none: all; named twice counts once
  HostPair after;                  // both empty: from the first pair
  size_t limit = 1000;
  bool estimate = false;  // every pair of `hosts`; those that were not measured with 0 samples
};

// In order of the pairs. NOT_FOUND: a host that is neither in the fabric nor measured.
// INVALID_ARGUMENT: an estimate of no hosts or of too many. FAILED_PRECONDITION, naming two hosts:
// no pair that far apart was measured. `snapshot` null: no fabric yet, so there are no estimates.
absl::StatusOr<std::vector<DistanceRecord>> FindDistances(const DistanceShelf& shelf,
                                                          const Snapshot* snapshot,
                                                          const DistanceQuery& query);

// FAILED_PRECONDITION: neither this pair nor one of its level was measured.
absl::Status NotMeasured(absl::string_view a, absl::string_view b, uint32_t level);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_DISTANCES_DISTANCE_LISTING_H_
