// What each of many may keep where there is room for so many in all: who has few keeps them, and
// those who have more are cut to one level, the same for all of them.
#ifndef COPPICE_DAEMON_BASE_FAIR_LEVEL_H_
#define COPPICE_DAEMON_BASE_FAIR_LEVEL_H_

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"

namespace coppice {

// The greatest number such that holders of `sizes`, each cut to it, have no more than `most`
// together; `least` if there is none. O(holders * log(largest)).
inline int64_t FairLevel(absl::Span<const int64_t> sizes, int64_t most, int64_t least = 0) {
  int64_t above = least + 1;
  for (const int64_t size : sizes) above = std::max(above, size + 1);
  while (above - least > 1) {
    const int64_t level = least + (above - least) / 2;
    int64_t sum = 0;
    for (const int64_t size : sizes) sum += std::min(size, level);
    (sum <= most ? least : above) = level;
  }
  return least;
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_BASE_FAIR_LEVEL_H_
