// Jobs whose members have lost their port: after each full sweep every active job's ports are
// looked up in the published fabric. What has gone is in the job's lost ranks, and told in an
// event; so is what has come back. A port that may only be hidden by a node that does not answer is
// lost when it has been so for kPatience.
//
// The job itself lives on: it ends by its owner or its lease. What becomes of its trees: repair.h.
#ifndef COPPICE_DAEMON_MANAGER_SWEEP_LOST_MEMBERS_H_
#define COPPICE_DAEMON_MANAGER_SWEEP_LOST_MEMBERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/base/clock.h"
#include "daemon/manager/event_log.h"
#include "daemon/manager/tables.h"

namespace coppice {

// One call at a time.
class LostMembers {
 public:
  static constexpr absl::Duration kPatience = kUnseenPatience;

  // The pointers outlive this.
  LostMembers(EventLog* events, const Clock* clock, Tables* tables)
      : events_(events), clock_(clock), tables_(tables) {}

  // Looks at all jobs; `before` is the view before the published one and may be null: it gives the
  // hosts that are gone their names. From now until the first member that may only be hidden is
  // lost; infinite: none is. O(ranks of all jobs).
  absl::Duration Update(const FabricView* before);

 private:
  void Tell(const Job& job, const std::vector<uint32_t>& was, const std::vector<uint32_t>& now,
            const FabricView* before, const FabricView& view);

  EventLog* const events_;
  const Clock* const clock_;
  Tables* const tables_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_SWEEP_LOST_MEMBERS_H_
