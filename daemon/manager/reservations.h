// Reservations: entries of switches and nodes that are kept for a tenant, for a time.
#ifndef COPPICE_DAEMON_MANAGER_RESERVATIONS_H_
#define COPPICE_DAEMON_MANAGER_RESERVATIONS_H_

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/manager/tables.h"

namespace coppice {

struct CreateReservationArgs {
  std::string tenant;
  uint32_t entries = 0;
  std::vector<Guid> switches;      // empty: all that have entries, if `entries` is not 0
  std::vector<std::string> nodes;  // hosts, or lists of them (node_list.h)
  bool lends = false;
  std::optional<absl::Time> from;  // none: now
  absl::Time until;
};

// Entries are kept within the reservation's time. Until it begins others may have them: what they
// then have of it is taken back, as what it lends. Nodes are kept in the same time; whoever is on
// one then stays. What is held when a reservation is made is never taken: it is made over what is
// free, or the tenant's own.
//
// Thread-safe. Create and Delete block for the store.
class Reservations : private UseCase {
 public:
  // `on_deadline` is called when there may be an earlier one.
  Reservations(const UseCase& with, std::function<void()> on_deadline)
      : UseCase(with), on_deadline_(std::move(on_deadline)) {}

  // Before anything is granted; those that have ended meanwhile go.
  void Restore(std::vector<ReservationRecord> reservations, ReservationId last);
  // INVALID_ARGUMENT: a name that is too long, no such switch or node, a time that is over;
  // RESOURCE_EXHAUSTED: fewer entries of a switch are free, or reserved by nobody else in that
  // time, or a node is reserved (names it, and by whom).
  absl::StatusOr<ReservationRecord> Create(const CreateReservationArgs& args, const Actor& actor);
  absl::Status Delete(ReservationId id, const Actor& actor);
  std::vector<ReservationRecord> List() const;  // by id
  // Finds what is to give way anew, once trees, accounts or switches are others.
  void Refresh();
  // What has begun or ended by now. Returns the time until the next does. Never waits for the
  // store.
  absl::Duration Expire();

 private:
  absl::Status CheckArgs(const CreateReservationArgs& args) const;
  absl::StatusOr<ReservationRecord> MakeRecord(const CreateReservationArgs& args) const;
  // Entries of one switch at one time, for one tenant.
  struct Room {
    int64_t total = 0, of_others = 0, of_own = 0;  // there are; held or reserved; reserved
    int64_t left() const { return total - of_others - of_own; }
  };
  // Both with the manager's lock held.
  Room RoomAt(absl::Time time, Guid guid, const std::string& tenant) const;
  absl::Status CheckRoom(const ReservationRecord& reservation) const;
  // What is kept at that time is in force; entries that have begun to be kept are taken back.
  // Returns of switches how many stay with others, who had them before or are not granted yet.
  using Lacking = absl::flat_hash_map<Guid, int64_t>;
  Lacking PutInForce(absl::Time now);
  void TellBegun(const ReservationRecord& reservation, const Lacking& lacking) const;

  const std::function<void()> on_deadline_;
  mutable std::mutex mutex_;  // held while they change; before the manager's lock
  std::vector<ReservationRecord> reservations_;  // by id
  ReservationId last_;
  absl::Time in_force_at_ = absl::InfinitePast();    // what is kept then is in force
  absl::Time next_change_ = absl::InfiniteFuture();  // when one begins or ends
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_RESERVATIONS_H_
