// What this process takes from its machine, as Linux counts it in /proc/self.
#ifndef COPPICE_DAEMON_BASE_PROCESS_H_
#define COPPICE_DAEMON_BASE_PROCESS_H_

#include <cstdint>

#include "absl/time/time.h"

namespace coppice {

struct ProcessNumbers {
  uint64_t resident_bytes = 0, virtual_bytes = 0;
  absl::Duration cpu_time;  // of all its threads, user and system
  uint64_t open_files = 0, max_open_files = 0;
  uint64_t threads = 0;
  absl::Time start_time = absl::InfinitePast();
};

// Reads a few files of /proc, which takes about 50 us. What cannot be read is zero.
ProcessNumbers ReadProcess();

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_PROCESS_H_
