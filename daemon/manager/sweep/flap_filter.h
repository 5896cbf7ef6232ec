// Keeps what goes up and down all the time from filling the table of events:
//
//   down up down up                       down up down ...             (quiet for 30 s)
//   told as they come  link.flapping: 4   counted, not told            link.steady: 17, up
//   |<------ within 30 s ------>|
//
// The same for nodes and switches that go and come, or fall silent and answer again. However much
// befalls an object in one sweep counts once. One that is steady but down is a warning. Knows
// objects and kinds, nothing of a fabric.
#ifndef COPPICE_DAEMON_MANAGER_SWEEP_FLAP_FILTER_H_
#define COPPICE_DAEMON_MANAGER_SWEEP_FLAP_FILTER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "db/store.h"

namespace coppice {

// Not thread-safe. `now` is monotonic.
class FlapFilter {
 public:
  static constexpr int kFlaps = 4;  // changes of one object within the time that make it flap
  static constexpr absl::Duration kWithin = absl::Seconds(30);

  // What is to be told of these, of one sweep, in their order; other kinds than .down, .up, .gone,
  // .new, .unreachable and .reachable pass.
  std::vector<EventRecord> Pass(std::vector<EventRecord> events, absl::Duration now);
  // Tells of the ends of flapping that have come by now, and forgets what is long past.
  std::vector<EventRecord> End(absl::Time when, absl::Duration now);

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_SWEEP_FLAP_FILTER_H_
