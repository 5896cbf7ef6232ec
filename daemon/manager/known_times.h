// How soon collectives of users' programs went, as their earlier runs measured it: what the next
// run of a program on ranks that lie alike starts with, instead of trying all ways anew
// (agents/mpi/tree/README.md). Measured times of the very collectives stand in for a correction of
// the cost profile: they are of one program, one layout and one length, where a profile has a few
// constants for all.
#ifndef COPPICE_DAEMON_MANAGER_KNOWN_TIMES_H_
#define COPPICE_DAEMON_MANAGER_KNOWN_TIMES_H_

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/base/clock.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/manager/store_calls.h"
#include "db/store.h"

namespace coppice {

// How ports lie: "32 ranks: 8 hosts, 2 leaf switches, 1 pod", down to the first level that all of
// them share. Empty: one has left the fabric. O(levels * ranks).
std::string LayoutOf(const Snapshot& snapshot, absl::Span<const Guid> ports);

// Thread-safe.
class KnownTimes final {
 public:
  static constexpr size_t kMaxTimes = 512;  // that one tree brings
  static constexpr uint32_t kMeanOf = 4;    // runs, of which a mean is
  static constexpr double kLeastUs = 1e-3, kMostUs = 1e12;
  static constexpr absl::Duration kAge = absl::Hours(24 * 30);  // older ones are not told
  // Of a user and of all, a program counting as kOfProgram times; then the programs that were
  // measured first go: of whoever has the most. All take about 40 MB.
  static constexpr size_t kMaxOfOwner = 20'000, kMaxOfAll = 200'000, kOfProgram = 10;

  // Both outlive it, and `calls` waits for the answers first.
  KnownTimes(StoreCalls* calls, const Clock* clock) : calls_(calls), clock_(clock) {}

  // What an earlier run of the daemon left.
  void Restore(std::vector<WayTimesRecord> records);

  // Empty: nothing is known.
  std::vector<WayTime> Find(const WayTimesOf& of) const;

  // Joins what a job measured to what is known: once for each operation, length and way, however
  // many of its communicators bring it. Counts at once; a failure to write is logged, and the next
  // start does without. INVALID_ARGUMENT: too many, one outside of kLeastUs to kMostUs or with more
  // bits than a length, or one that is named twice; then nothing changes.
  absl::Status Add(const WayTimesOf& of, JobId job, absl::Span<const WayTime> measured);

 private:
  // All programs of one user.
  struct Owner {
    std::map<WayTimesOf, WayTimesRecord> records;
    std::set<std::pair<absl::Time, WayTimesOf>> by_age;
    size_t size = 0;
  };

  // mutex_ is held.
  void Enter(WayTimesRecord record);
  void Leave(const WayTimesOf& of);
  // Beyond the limits the oldest, but not `kept`.
  std::vector<WayTimesOf> DropOldest(const WayTimesOf* kept);
  void Write(PutWayTimes put);

  StoreCalls* const calls_;
  const Clock* const clock_;
  std::mutex writing_;  // so that the store applies what was added in the order of memory
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, Owner> owners_;
  size_t size_ = 0;  // of all
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_KNOWN_TIMES_H_
