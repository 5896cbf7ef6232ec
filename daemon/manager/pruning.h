// Drops old events, and jobs and placements that ended long ago, a few in each mutation so that
// nobody waits for long behind one, and as many mutations, one after the other, as there is to
// drop.
//
// Both are labelled by the wall clock, which may be set wrong: a step forward by a year must not
// drop a year of them. So age counts only when that clock has gone along with the monotonic one for
// an hour, time enough to set it right; number counts always. Whoever adds events drops those that
// are too many with them (event_log.h); what is left to do here is after the limit was lowered.
// Of jobs each owner has a share: one who registers and ends them by the thousand does not free the
// request_ids of others, whose retries would make second jobs. Knows no kinds of events.
#ifndef COPPICE_DAEMON_MANAGER_PRUNING_H_
#define COPPICE_DAEMON_MANAGER_PRUNING_H_

#include <cstdint>

#include "absl/time/time.h"
#include "daemon/base/clock.h"
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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PRUNING_H_
