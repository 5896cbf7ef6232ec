// What one sweep saw differently from the one before, as events. Kinds and objects:
//
//   link.down, link.up, link.rate                     link:GUID/PORT-GUID/PORT  (lower end first)
//   switch.gone, .new, .unreachable, .reachable       switch:GUID
//   node.gone, .new, .unreachable, .reachable         host:NAME; node:GUID if it has no host
//   sm.lost, sm.found, sm.changed, lids.changed       fabric
//
// GUIDs are node GUIDs. A node that did not answer is unreachable, not gone, and so is what was to
// be seen through it only (unseen.h); each of their links is down all the same. They are gone when
// somebody who answers has nothing there, and are not new when they come back.
//
// Bounded: of a kind that more than kMaxOfAKind have, one event with object "fabric" gives the
// number and the first few. A function of values.
#ifndef COPPICE_DAEMON_MANAGER_SWEEP_FABRIC_EVENTS_H_
#define COPPICE_DAEMON_MANAGER_SWEEP_FABRIC_EVENTS_H_

#include <cstddef>
#include <vector>

#include "absl/time/time.h"
#include "daemon/manager/fabric_view.h"
#include "db/store.h"

namespace coppice {

inline constexpr size_t kMaxOfAKind = 64;

// `before` is null for the first sweep, of which only silent nodes are told. O(links) if the fabric
// is another, else O(silent nodes).
std::vector<EventRecord> FabricEvents(const FabricView* before, const FabricView& now,
                                      absl::Time when);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_SWEEP_FABRIC_EVENTS_H_
