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
#include <memory>
#include <mutex>
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

// LevelMedians for a listing that is asked for page by page: found once for each state of the shelf
// and each fabric. Thread-safe; others wait while they are found.
class LevelMedianCache final {
 public:
  using Medians = std::map<uint32_t, LevelMedian>;

  std::shared_ptr<const Medians> Get(const DistanceShelf& shelf, const Snapshot& snapshot);

 private:
  std::mutex mutex_;
  // Guarded by mutex_: what medians_ were found of.
  uint64_t revision_ = 0;
  std::weak_ptr<const Fabric> fabric_;
  std::weak_ptr<const Routes> routes_;
  std::shared_ptr<const Medians> medians_;
};

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
// With estimates, medians of the same shelf at hand: O(page * log kept).
absl::StatusOr<std::vector<DistanceRecord>> FindDistances(const DistanceShelf& shelf,
                                                          const Snapshot* snapshot,
                                                          const DistanceQuery& query,
                                                          LevelMedianCache& medians);

// FAILED_PRECONDITION: neither this pair nor one of its level was measured.
absl::Status NotMeasured(absl::string_view a, absl::string_view b, uint32_t level);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_DISTANCES_DISTANCE_LISTING_H_
