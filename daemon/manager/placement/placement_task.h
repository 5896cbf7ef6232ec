// A task in names as a request in indices of one fabric.
#ifndef COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_TASK_H_
#define COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_TASK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/fabric/fabric.h"
#include "daemon/manager/placement/placement_view.h"

namespace coppice {

// Of one search, and of all the searches of one call.
inline constexpr absl::Duration kLongestBudget = absl::Minutes(1);
// Of all the searches of one call while others wait for it to take its nodes.
inline constexpr absl::Duration kLongestTurn = absl::Seconds(1);

// What the searches of one call share: planners are few, and others wait for them. Equal shares of
// what is left, none of them more than it asks for; what an attempt has used, the next one has not.
class CallBudget {
 public:
  explicit CallBudget(const Clock* clock)
      : clock_(clock), end_(clock->Monotonic() + kLongestBudget), latest_(end_ + kLongestBudget) {}

  // The searches from now on share no more than this.
  void LimitTo(absl::Duration most) { end_ = std::min(end_, clock_->Monotonic() + most); }
  // So many tasks with a pattern are to come.
  void BeginAttempt(size_t searches) { searches_ = searches; }
  // Of the next one.
  absl::Duration NextOf(const PlacementTask& task);
  // DEADLINE_EXCEEDED: what goes on beside the searches has taken as long again.
  absl::Status Check() const;

 private:
  const Clock* const clock_;
  absl::Duration end_;           // of searches
  const absl::Duration latest_;  // of everything
  size_t searches_ = 0;
};

// What can be said without a fabric. INVALID_ARGUMENT: no nodes, a budget or numbers out of range.
absl::Status CheckTask(const PlacementTask& task);

// The hosts that a list of names or node lists means. INVALID_ARGUMENT: a list that cannot be read,
// one host twice (names it). NOT_FOUND: hosts that the fabric has not (names the first few).
// Messages begin with `field`.
absl::StatusOr<std::vector<HostIndex>> ReadNodes(const Fabric& fabric,
                                                 const std::vector<std::string>& names,
                                                 absl::string_view field);

// `weights` hold where the task gives none. Errors as ReadNodes.
absl::StatusOr<PlacementRequest> ReadTask(const Fabric& fabric, const PlacementTask& task,
                                          const PlacementObjective& weights);

// Of the content, for the fingerprint of a request; the pattern counts by name and totals.
uint64_t FingerprintOf(const CreatePlacementArgs& args);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_TASK_H_
