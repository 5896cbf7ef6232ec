// Measured distances: kept by pairs of hosts, in memory and in the store, the newest so many; as
// they are asked for, page by page, with estimates for pairs that were not measured; and as the D
// of a mapping.
#ifndef COPPICE_DAEMON_MANAGER_DISTANCES_DISTANCE_STORE_H_
#define COPPICE_DAEMON_MANAGER_DISTANCES_DISTANCE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/manager/distances/measurement.h"
#include "daemon/manager/store_calls.h"
#include "daemon/mapping/places.h"
#include "db/store.h"

namespace coppice {

// Thread-safe.
class DistanceStore final {
 public:
  static constexpr size_t kMaxPairs = 1'000'000;  // about 250 MB

  // Reads what there is. The store outlives it. Errors: as Store::Distances.
  static absl::StatusOr<std::unique_ptr<DistanceStore>> Create(Store* store,
                                                               size_t most_pairs = kMaxPairs);

  // In place of what was measured of the same pairs; of too many the oldest go. Counts at once; a
  // failure to write is logged, and the next start does without. The records are well-formed
  // (db/fabric_records.h).
  void Put(std::vector<DistanceRecord> records);

  size_t size() const;
  // Another one after each Put.
  uint64_t revision() const;
  // What was measured of the pair, whose hosts are in order.
  std::optional<DistanceRecord> Find(const HostPair& hosts) const;
  // Calls `each` with every record, which lives for that call, in order; others wait meanwhile.
  template <class Each>
  void ForEach(const Each& each) const {
    std::lock_guard lock(mutex_);
    for (const auto& [pair, record] : records_) each(record);
  }
  // The same of the pairs after `after`, for as long as `each` answers true.
  template <class Each>
  void ForEachAfter(const HostPair& after, const Each& each) const {
    std::lock_guard lock(mutex_);
    for (auto at = records_.upper_bound(after); at != records_.end() && each(at->second);) ++at;
  }

 private:
  DistanceStore(Store* store, size_t most_pairs) : most_pairs_(most_pairs), calls_(store) {}
  void Enter(DistanceRecord record);
  // The pairs that are too many.
  std::vector<HostPair> DropOldest();

  const size_t most_pairs_;
  std::mutex writing_;  // so that the store applies what was put in the order of memory
  // std, not absl: ThreadSanitizer does not see through Debian's Abseil.
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  uint64_t revision_ = 0;
  std::map<HostPair, DistanceRecord> records_;
  std::set<std::pair<absl::Time, HostPair>> by_age_;
  StoreCalls calls_;  // last: waits for the answers
};

// An estimate is, for each number, the median of the pairs that are as many links apart in the
// present fabric, and were measured over the same transport.

// --- How far hosts are apart in the fabric, in links; a host with several ports by its first ---

// Of hosts that no links join, or that the fabric does not have.
inline constexpr uint32_t kApart = UINT32_MAX;

// Links between two different endpoints' hosts: 2 of one leaf switch, 4, 6, ...; kApart.
uint32_t LevelOf(const SwitchDistances& distances, EndpointIndex a, EndpointIndex b);

// By leaf switch. The snapshot outlives it.
NodeLevels LevelsOf(const Snapshot& snapshot, const std::vector<std::string>& hosts);

// --- Over which transport distances are taken together: those of two cannot be compared ---

// "TCP", "verbs".
const char* NameOf(Transport transport);

// The one over which most pairs of these hosts were measured, or, if none were, most of all pairs;
// verbs if equally many. O(kept).
Transport PrevailingTransport(const DistanceStore& distance_store,
                              const std::vector<std::string>& hosts);

// What pairs were measured over, and links apart (LevelOf).
using TransportLevel = std::pair<Transport, uint32_t>;
// What a pair that far apart is taken to have: without hosts, with 0 samples.
using Medians = std::map<TransportLevel, DistanceRecord>;

// Of all kept pairs whose hosts are in the fabric. O(kept).
Medians LevelMedians(const DistanceStore& distance_store, const Snapshot& snapshot);

// LevelMedians, and PrevailingTransport of the hosts asked for last, for a listing that is asked
// for page by page: found once for each state of the distance_store and each fabric. Thread-safe;
// others wait while they are found.
class LevelMedianCache final {
 public:
  std::shared_ptr<const Medians> Get(const DistanceStore& distance_store, const Snapshot& snapshot);
  Transport Prevailing(const DistanceStore& distance_store, const std::vector<std::string>& hosts);

 private:
  std::mutex mutex_;
  // Guarded by mutex_: what medians_ were found of.
  uint64_t revision_ = 0;
  std::weak_ptr<const Fabric> fabric_;
  std::weak_ptr<const Routes> routes_;
  std::shared_ptr<const Medians> medians_;
  uint64_t prevailing_revision_ = 0;
  std::vector<std::string> prevailing_of_;
  std::optional<Transport> prevailing_;
};

struct DistanceQuery {
  static constexpr size_t kMaxEstimated = 2048;  // hosts

  std::vector<std::string> hosts;  // none: all; named twice counts once
  HostPair after;                  // both empty: from the first pair
  size_t limit = 1000;
  // Every pair of `hosts`, all over one transport; those that were not measured over it with 0
  // samples.
  bool estimate = false;
  // Only what was measured over it; none: everything, or PrevailingTransport for estimates.
  std::optional<Transport> transport;
};

// In order of the pairs. NOT_FOUND: a host that is neither in the fabric nor measured.
// INVALID_ARGUMENT: an estimate of no hosts or of too many. FAILED_PRECONDITION, naming two hosts:
// no pair that far apart was measured. `snapshot` null: no fabric yet, so there are no estimates.
// With estimates, medians of the same distance_store at hand: O(page * log kept).
absl::StatusOr<std::vector<DistanceRecord>> FindDistances(const DistanceStore& distance_store,
                                                          const Snapshot* snapshot,
                                                          const DistanceQuery& query,
                                                          LevelMedianCache& medians);

// FAILED_PRECONDITION: neither this pair nor one of its level was measured over that.
absl::Status NotMeasured(absl::string_view a, absl::string_view b, const TransportLevel& level);

// Measured distances as the D of a mapping (Wang 2015, 3.3 and 4.2): how long a byte takes from
// place to place.
//
//   D(a, b) = 1/S + L/m    in units of the least that is not 0;  0 within a host, on one switch
//
// S bandwidth, L latency. Wang's D is the gap, 1/S alone, as bytes times gap is time. Where the
// pattern counts messages, m is the mean message: then the sum of D_ij * (1/S + L/m) is
// GraphHunter's sum of L * N_ij + D_ij / S (Baranov 2022), exactly if all pairs have messages of
// one size. A pattern without counts has m without bound, and Wang's D. Agents measure nothing
// between the ports of one node: these are 0 apart on one switch; on two they stand for pairs of
// hosts as many links apart, or nearest to that, or are 0 apart where no pair was measured.
//
// A matrix. `message_bytes`: m; 0: the pattern counts no messages. All of it is over one transport,
// PrevailingTransport of the hosts; a pair that was not measured over it has the median of those as
// many links apart. FAILED_PRECONDITION, naming two hosts: no such pair was either.
// INVALID_ARGUMENT: as PlaceDistances::Matrix. O(places^2 + kept).
absl::StatusOr<std::shared_ptr<const PlaceDistances>> MeasuredDistances(
    const Places& places, const Snapshot& snapshot, const DistanceStore& distance_store,
    double message_bytes);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_DISTANCES_DISTANCE_STORE_H_
