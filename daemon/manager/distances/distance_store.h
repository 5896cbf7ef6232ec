// Measured distances as they are kept: by pairs of hosts, in memory and in the store, the newest so
// many. Knows neither agents nor the fabric.
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
#include "daemon/manager/store_calls.h"
#include "db/store.h"

namespace coppice {

using HostPair = std::pair<std::string, std::string>;  // in order, as bytes

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_DISTANCES_DISTANCE_STORE_H_
