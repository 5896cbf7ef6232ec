// What the steps of the timetable do: read the subnet, and see to what follows from it.
//
//   full:      read, publish, tell what differs --> lost members --> repair of trees, and better
//              plans for those that were repaired in haste
//   light:     look whether it still holds; what has lost its link: publish without --> lost
//              members, repair
//   counters:  read, hand on
//
// Lost members: after each full sweep every active job's ports are looked up in the published
// fabric. What has gone is in the job's lost ranks, and told in an event; so is what has come back.
// The job itself lives on: it ends by its owner or its lease.
//
// Says of each how it went; when they run, and on which thread: sweeper.h. One call at a
// time.
#ifndef COPPICE_DAEMON_MANAGER_ROUNDS_H_
#define COPPICE_DAEMON_MANAGER_ROUNDS_H_

#include "daemon/fabric/subnet_port.h"
#include "daemon/manager/fabric_events.h"
#include "daemon/manager/load_keeper.h"
#include "daemon/manager/repair.h"
#include "daemon/manager/sweeper.h"
#include "daemon/manager/tables.h"
#include "daemon/manager/topology.h"

namespace coppice {

class Rounds : private UseCase {
 public:
  // The pointers outlive this.
  Rounds(const UseCase& with, SubnetPort* port, Topology* topology, Repair* repair,
         LoadKeeper* load)
      : UseCase(with), port_(port), topology_(topology), repair_(repair), load_(load) {}

  // For Sweeper.
  Sweeper::Duties Duties();

 private:
  Sweeper::FullSweep Full(bool in_haste, absl::Duration light_period);
  // Before what may take half a light period: looks, if that has gone since the last look. A cut
  // cable waits for no longer than a period so, whatever else is being read. False: trees are left
  // broken.
  bool LookAhead(absl::Duration light_period);
  // The light sweep, and what must be done about it at once. False: trees are left broken.
  absl::StatusOr<LightSweepResult> Look(bool& is_mended);
  // Looks at all jobs; `before` is the view before the published one and may be null: it gives the
  // hosts that are gone their names. A port that may only be hidden by a node that does not answer
  // is lost after kUnseenPatience: returns the time until the first is; infinite: there is none.
  // O(ranks of all jobs).
  absl::Duration UpdateMembers(const FabricView* before);
  bool Mend();
  Sweeper::OtherSweep Light();
  Sweeper::OtherSweep Counters(absl::Duration light_period);
  void Tell(SweepKind kind, const absl::Status& status);

  SubnetPort* const port_;
  Topology* const topology_;
  Repair* const repair_;
  LoadKeeper* const load_;
  UnreadWatch unread_;
  CableDamper damper_;
  absl::Duration last_look_;
  bool has_failed_look_ = false;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_ROUNDS_H_
