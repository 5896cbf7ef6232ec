// What the manager sees to from time to time: old rows that go, a store that refuses, other
// daemons.
#ifndef COPPICE_DAEMON_MANAGER_HOUSEKEEPING_H_
#define COPPICE_DAEMON_MANAGER_HOUSEKEEPING_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/manager/event_log.h"
#include "daemon/manager/store_calls.h"

namespace coppice {

// One thread.
class Pruning {
 public:
  static constexpr absl::Duration kEvenFor = absl::Hours(1);

  struct Limits {
    int64_t keep = 0;    // the newest so many; of jobs, who has the most of them loses first
    absl::Duration age;  // and not older than this
  };

  // Both outlive this; the calls also whatever Run has begun.
  Pruning(StoreCalls* calls, const Clock* clock) : calls_(calls), clock_(clock) {}

  // Drops what is beyond the limits; returns when the first mutations are on their way. To be
  // called every few seconds.
  // `ended` holds for jobs and for placements, each.
  void Run(const Limits& events, const Limits& ended);

 private:
  // Whether the wall clock has gone evenly for kEvenFor.
  bool IsEven(absl::Time wall, absl::Duration monotonic);
  void PruneOldJobs(absl::Time before);
  // Of owners with more jobs than a level those that ended first, so that `keep` are left.
  void PruneSurplusOfJobs(int64_t keep);
  // Mutations that the number of events or of placements calls for; at least 1.
  int RoundsOfEvents(int64_t keep);
  int RoundsOfPlacements(int64_t keep, absl::Time before);

  StoreCalls* const calls_;
  const Clock* const clock_;
  bool has_start_ = false;
  absl::Time wall_start_;
  absl::Duration start_;  // monotonic, at wall_start_
};

// Notices that the store refuses writes, as on a full disk or when its file is gone, and that it
// takes them again: in the log at once, and as events as soon as an event can be kept. While it
// refuses, an event is tried now and then: on a daemon that nobody asks for anything the first
// write that goes well must not wait for a user.

// Not thread-safe.
class StoreWatch {
 public:
  // How often an event is tried while the store refuses.
  static constexpr absl::Duration kRetry = absl::Seconds(10);

  StoreWatch(StoreCalls* calls, EventLog* events, const Clock* clock)
      : calls_(calls), events_(events), clock_(clock) {}

  // To be called every second or so. Waits for nothing.
  void Look();

 private:
  StoreCalls* const calls_;
  EventLog* const events_;
  const Clock* const clock_;
  std::string fault_;  // empty: it takes writes
  absl::Duration since_, tried_;
  uint64_t refused_before_ = 0;
};

// Signs that another daemon, with another database, grants trees on this subnet. Each counts only
// its own grants, so the same entries are given away twice and nobody notices. Daemons only read
// the subnet and leave nothing there that another could find; but agents serve one after the other,
// and say whose they were.

// Thread-safe.
class OtherDaemons {
 public:
  // How long a sign is one: a database that was replaced is heard of until every agent has come
  // over.
  static constexpr absl::Duration kKept = absl::Hours(1);

  // `own`: Store::DatabaseId.
  OtherDaemons(uint64_t own, EventLog* events, const Clock* clock)
      : own_(own), events_(events), clock_(clock) {}

  // `from`, "the agent of host n7", was served by the daemon with that database last; 0: by none,
  // or it does not know. The first sign of each is an event.
  void Hear(uint64_t database, absl::string_view from);
  // In words, one for each database; empty: none is known.
  std::vector<std::string> Signs() const;

 private:
  struct Sign {
    std::string words;
    absl::Duration heard;
  };
  const uint64_t own_;
  EventLog* const events_;
  const Clock* const clock_;
  mutable std::mutex mu_;
  std::map<uint64_t, Sign> signs_;  // guarded by mu_
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_HOUSEKEEPING_H_
