// Drops old events, a few thousand in each mutation so that nobody waits for long behind one, and
// as many mutations, one after the other, as a storm of events calls for.
//
// Events are labelled by the wall clock, which may be set wrong: a step forward by a year must not
// drop a year of events. So age counts only when that clock has gone along with the monotonic one
// for an hour, time enough to set it right; number counts always. Knows no kinds of events.
#ifndef COPPICE_DAEMON_MANAGER_EVENT_PRUNING_H_
#define COPPICE_DAEMON_MANAGER_EVENT_PRUNING_H_

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/manager/store_calls.h"

namespace coppice {

// One thread.
class EventPruning {
 public:
  static constexpr absl::Duration kEvenFor = absl::Hours(1);

  // Both outlive this; the calls also whatever Run has begun.
  EventPruning(StoreCalls* calls, const Clock* clock) : calls_(calls), clock_(clock) {}

  // Drops what is beyond the newest `keep` or older than `age`; returns when the first mutation is
  // on its way. To be called every few seconds.
  void Run(int64_t keep, absl::Duration age);

 private:
  // Whether the wall clock has gone evenly for kEvenFor.
  bool IsEven(absl::Time wall, absl::Duration monotonic);
  // Mutations that the number of events calls for; at least 1.
  int Rounds(int64_t keep);

  StoreCalls* const calls_;
  const Clock* const clock_;
  bool has_start_ = false;
  absl::Time wall_start_;
  absl::Duration start_;  // monotonic, at wall_start_
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_EVENT_PRUNING_H_
