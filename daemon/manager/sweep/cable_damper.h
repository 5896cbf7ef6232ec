// Keeps one cable that goes up and down all the time from having the whole fabric read for it,
// again and again, while others wait. What a light sweep sees of links is worth a full sweep, but
// for ends that flap: these are, once they have rested.
//
//   down up down up  down up ...                (quiet for kRest)
//   each worth one   nothing                    one more, if it is not as it was last read
//   |<- within 30 s ->|
//
// Lost links are taken out of the fabric without a full sweep; it is only the way back in that
// waits. The same numbers as events' (flap_filter.h). Values only.
#ifndef COPPICE_DAEMON_MANAGER_SWEEP_CABLE_DAMPER_H_
#define COPPICE_DAEMON_MANAGER_SWEEP_CABLE_DAMPER_H_

#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "daemon/fabric/subnet_port.h"

namespace coppice {

// Not thread-safe. `now` is monotonic.
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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_SWEEP_CABLE_DAMPER_H_
