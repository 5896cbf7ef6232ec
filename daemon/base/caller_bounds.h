// What one caller may have of the daemon at once: plain numbers, of the configuration's [limits].
#ifndef COPPICE_DAEMON_BASE_CALLER_BOUNDS_H_
#define COPPICE_DAEMON_BASE_CALLER_BOUNDS_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace coppice {

struct CallerBounds {
  uint32_t calls = 64;               // that run, but for streams
  uint32_t waiting = 1024;           // that wait for that
  uint32_t streams = 1024;           // watches, searches, leases that are kept alive
  uint32_t calls_per_second = 2000;  // over two seconds
  // In memory: of requests under way, and of answers that it has not read. Where a caller has no
  // other, one may take more, of one caller at a time.
  int64_t request_memory = int64_t{64} << 20;
  int64_t answer_memory = int64_t{64} << 20;
  friend bool operator==(const CallerBounds&, const CallerBounds&) = default;
};

struct AdmissionBounds {
  CallerBounds caller;
  CallerBounds administrator = {256, 4096, 4096, 50'000, int64_t{96} << 20, int64_t{96} << 20};
  // Of all callers together, but administrators, who have their own only.
  uint32_t calls = 4096;
  uint32_t waiting = 32'768;
  uint32_t streams = 65'536;
  // The same, of administrators, too; and the most that one request may take.
  int64_t request_memory = int64_t{192} << 20;
  int64_t answer_memory = int64_t{192} << 20;
  absl::Duration longest_reading = absl::Seconds(30);  // of a request, and of a large answer
  friend bool operator==(const AdmissionBounds&, const AdmissionBounds&) = default;
};

struct ConnectionBounds {
  // At Unix sockets.
  uint32_t of_user = 256;
  uint32_t of_all = 4096;
  absl::Duration longest_silence = absl::Seconds(10);  // before the first call
  // Over TCP.
  uint32_t tcp_of_address = 256;
  uint32_t tcp_of_all = 32'768;
  friend bool operator==(const ConnectionBounds&, const ConnectionBounds&) = default;
};

// What one of many may have of what all share: its own bound, and never more than half of what the
// others leave. So whoever comes finds something, however many have come before.
constexpr int64_t ShareOf(int64_t own_most, int64_t all_most, int64_t of_others) {
  return std::min(own_most, (all_most - of_others + 1) / 2);
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_CALLER_BOUNDS_H_
