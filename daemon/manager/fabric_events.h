// What one sweep saw differently from the one before, as events, and what of that is told and read
// anew. Kinds and objects:
//
//   link.down, link.up, link.rate                     link:GUID/PORT-GUID/PORT  (lower end first)
//   switch.gone, .new, .unreachable, .reachable       switch:GUID
//   node.gone, .new, .unreachable, .reachable         host:NAME; node:GUID if it has no host
//   sm.lost, sm.found, sm.changed, lids.changed       fabric
//   partitions.changed                                partition:NUMBER; fabric: at ports that look
//
// GUIDs are node GUIDs. A node that did not answer is unreachable, not gone, and so is what was to
// be seen through it only (inventory.h); each of their links is down all the same.
#ifndef COPPICE_DAEMON_MANAGER_FABRIC_EVENTS_H_
#define COPPICE_DAEMON_MANAGER_FABRIC_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/fabric/fabric.h"
#include "daemon/fabric/subnet_port.h"
#include "daemon/manager/fabric_view.h"
#include "db/store.h"

namespace coppice {

inline constexpr size_t kMaxOfAKind = 64;

// `before` is null for the first sweep, of which only silent nodes are told. O(links) if the fabric
// is another, else O(silent nodes).
std::vector<EventRecord> FabricEvents(const FabricView* before, const FabricView& now,
                                      absl::Time when);

// Keeps what goes up and down all the time from filling the table of events:
//
//   down up down up                       down up down ...             (quiet for 30 s)
//   told as they come  link.flapping: 4   counted, not told            link.steady: 17, up
//   |<------ within 30 s ------>|
//
// The same for nodes and switches that go and come, or fall silent and answer again, and for agents
// of switches that connect and disconnect. However much befalls an object in one sweep counts once.
// One that is steady but down is a warning.
// Not thread-safe. `now` is monotonic.
class FlapFilter {
 public:
  static constexpr int kFlaps = 4;  // changes of one object within the time that make it flap
  static constexpr absl::Duration kWithin = absl::Seconds(30);

  // What is to be told of these, of one sweep, in their order; other kinds than .down, .up, .gone,
  // .new, .unreachable, .reachable, .disconnected and .connected pass.
  std::vector<EventRecord> Pass(std::vector<EventRecord> events, absl::Duration now);
  // Tells of the ends of flapping that have come by now, and forgets what is long past.
  std::vector<EventRecord> End(absl::Time when, absl::Duration now);
  // Whether End has nothing to tell or to forget until something is passed.
  bool IsAtRest() const { return objects_.empty(); }

 private:
  struct Object {
    std::vector<absl::Duration> changes;  // the last few, while it does not flap
    bool flaps = false;
    uint64_t count = 0;  // since it began to flap, and what made it
    absl::Duration last;
    std::string last_kind;
  };
  std::map<std::string, Object> objects_;
};

// Keeps one cable that goes up and down all the time from having the whole fabric read for it,
// again and again, while others wait. What a light sweep sees of links is worth a full sweep, but
// for ends that flap: these are, once they have rested.
//
//   down up down up  down up ...                (quiet for kRest)
//   each worth one   nothing                    one more, if it is not as it was last read
//   |<- within 30 s ->|
//
// Lost links are taken out of the fabric without a full sweep; it is only the way back in that
// waits. The same numbers as events'. Not thread-safe. `now` is monotonic.
class CableDamper {
 public:
  static constexpr absl::Duration kRest = absl::Seconds(10);

  // Of one light sweep, all that it saw: whether one of these is worth a full sweep.
  bool IsWorthASweep(absl::Span<const LinkChange> changes, absl::Duration now);
  // A full sweep has seen all ends: what light sweeps see differs from that from now on.
  void ReadAll();

 private:
  enum class State : char { kAsRead, kUp, kDown };
  struct End {
    State state = State::kAsRead;
    std::vector<absl::Duration> moves;  // the last few
  };
  static void Move(End& end, State state, absl::Duration now);

  std::map<std::pair<Guid, PortNum>, End> ends_;
};

// Links that were up since the daemon's start and are not any more: what an administrator has to
// look at. One leaves the list when it is up again, or when either of its ports has another cable.
// Thread-safe.
class DownLinks final {
 public:
  static constexpr size_t kMax = 1024;  // that are kept; the newest go when there are more

  // One fabric came after another at `when`. O(links log links).
  void Compare(const Fabric& before, const Fabric& now, absl::Time when);
  // By ends.
  std::vector<DownLink> All() const;

 private:
  mutable std::mutex mu_;
  std::vector<DownLink> links_;  // by ends; guarded by mu_
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_FABRIC_EVENTS_H_
