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
// Its resident_bytes alone, in a tenth of the time.
uint64_t ReadResidentBytes();

// Has malloc give large blocks, and the free end of each thread's arena, back to the system as soon
// as they are free. By default the first large block that is freed raises both thresholds for good,
// up to 32 and 64 MiB: then each thread keeps as much, which malloc_trim does not touch. Before
// other threads start.
void GiveFreeMemoryBack();

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_PROCESS_H_
