// What the daemon says of a link's load, and what decides it. Plain structs.
#ifndef COPPICE_DAEMON_MANAGER_LOAD_LINK_MEASURE_H_
#define COPPICE_DAEMON_MANAGER_LOAD_LINK_MEASURE_H_

#include "absl/time/time.h"
#include "daemon/manager/load/port_rates.h"

namespace coppice {

struct LoadOptions {
  // What was measured so long ago weighs 1/e of what is measured now.
  absl::Duration time_constant = absl::Seconds(60);
  // Symbol errors, receive errors and discards of a link, per minute, from which on they are told.
  double error_threshold = 10;
};

// Load that was measured counts so long without another measurement; longer if readings are rarer.
inline constexpr absl::Duration kLoadLife = absl::Minutes(5);

// Of one direction, in shares of the capacity.
struct DirectionMeasure {
  double average = 0;  // measured, moving average; 0 if it is too old
  double peak = 0;     // highest between two readings, since it was first read
  absl::Time peaked = absl::InfinitePast();  // when that was
  absl::Time read = absl::InfinitePast();    // newest measurement; InfinitePast: none
  double promised = 0;                       // by granted trees
  // How well what the newest two readings moved is known. At least: a count was reset or came to
  // its end in between, and the load is at least what was counted. Unknown: there are no two, or a
  // count of 32 bits stands at its end and the average is what it was when it was `read`.
  Certainty certainty = Certainty::kUnknown;
};

struct LinkMeasure {
  DirectionMeasure ab, ba;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LOAD_LINK_MEASURE_H_
