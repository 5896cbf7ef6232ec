// From two readings of a port's counters to what it moved in between. Functions of values: knows no
// fabric, no links and no clock.
//
//   before  after   64-bit count that goes around        32-bit count that stops at its end
//   ------  -----   ---------------------------------    ----------------------------------
//      a  <=  b     b - a                                b - a; at least that if b is the end
//      a  >   b     b + 2^64 - a if the link can carry   a reset: b was counted since, at least
//                   that in the time; else a reset
//   a little above  unknown, unless it went around        unknown
//     b > 0
//
// A device that answers with an older count than before, or counts a little down, has not begun
// anew: taken for a reset, all of b would be new. A reset that happens to end there costs one
// interval.
//
// A reset that leaves b above a cannot be told: b - a then is less than what moved, never more. If
// other data counters of the port fell, all of them count as at least. So no rate is ever negative,
// and none is beyond the capacity: what would be is cut there, and noted (IBA vol. 1, 16.1.3.5:
// counters of PortCounters stop at their greatest value, those of PortCountersExtended go around).
#ifndef COPPICE_DAEMON_MANAGER_LOAD_PORT_RATES_H_
#define COPPICE_DAEMON_MANAGER_LOAD_PORT_RATES_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/fabric/subnet_port.h"

namespace coppice {

// Readings that are closer give no rate: the answer's way back is a part of their distance.
inline constexpr absl::Duration kShortestInterval = absl::Milliseconds(10);
// A measured rate may be so much above the capacity before it is noted: readings come with jitter.
inline constexpr double kCapacityTolerance = 0.05;

enum class Certainty : uint8_t { kUnknown, kAtLeast, kExact };

// How much a count has grown.
struct Growth {
  uint64_t count = 0;  // 0 if unknown
  Certainty certainty = Certainty::kUnknown;
  bool is_reset = false;
  bool is_stopped = false;  // stood at its end all the time: unknown, which is not nothing
  friend bool operator==(const Growth&, const Growth&) = default;
};

// Fell by at most a sixteenth, or by one, and not to 0: no reset.
bool SlippedBack(uint64_t before, uint64_t after);

// Of a 64-bit count that goes around, which cannot grow by more than `most`.
Growth GrowthOfWrapping(uint64_t before, uint64_t after, uint64_t most);
// Of a count that stops at `greatest`.
Growth GrowthOfStopping(uint64_t before, uint64_t after, uint64_t greatest);

// Error counters, in the order in which people read them.
enum class ErrorCount : uint8_t {
  kSymbolErrors,
  kLinkRecoveries,
  kLinkDowned,
  kReceiveErrors,
  kRemotePhysicalErrors,
  kRelayErrors,
  kSendDiscards,
  kSendConstraintErrors,
  kReceiveConstraintErrors,
  kIntegrityErrors,
  kBufferOverruns,
  kVl15Dropped,
};
inline constexpr size_t kErrorCounts = 12;
absl::string_view NameOf(ErrorCount count);  // "symbol_errors"

// What one port moved between two readings.
struct PortInterval {
  absl::Duration length;  // 0: the readings are no pair, and all else is empty
  Growth sent_bytes, received_bytes;
  std::array<uint64_t, kErrorCounts> errors = {};  // [ErrorCount] new ones, at least
  bool is_cut = false;  // a rate was beyond the capacity, and is the capacity

  uint64_t error(ErrorCount count) const { return errors[static_cast<size_t>(count)]; }
  uint64_t all_errors() const;
  // Bytes a second; 0 without a length.
  double sent_rate() const { return Rate(sent_bytes); }
  double received_rate() const { return Rate(received_bytes); }

 private:
  double Rate(const Growth& growth) const {
    const double seconds = absl::ToDoubleSeconds(length);
    return seconds > 0 ? static_cast<double>(growth.count) / seconds : 0;
  }
};

// `capacity` of the link in bytes a second, 0: unknown. Readings of the same port. No pair: `after`
// is less than kShortestInterval later, at the same instant, or earlier; then `before` should stay
// the one to compare with. Bytes are known only between readings of one width of data, errors only
// between readings of one width of errors: a count that had stopped at 65,535 may go on at
// millions.
PortInterval Compare(const CounterReading& before, const CounterReading& after, double capacity);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LOAD_PORT_RATES_H_
