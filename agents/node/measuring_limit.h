// Until when a measurement may wait: a deadline, and a stop that may come before it.
#ifndef COPPICE_AGENTS_NODE_MEASURING_LIMIT_H_
#define COPPICE_AGENTS_NODE_MEASURING_LIMIT_H_

#include <algorithm>
#include <atomic>
#include <chrono>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coppice {

struct MeasuringLimit {
  // How soon a stop is noticed.
  static constexpr std::chrono::milliseconds kLookEvery{50};

  std::chrono::steady_clock::time_point deadline;
  const std::atomic<bool>* is_stopped;  // null: never

  // How long to wait for something before this is asked again. CANCELLED: it was stopped.
  // DEADLINE_EXCEEDED, in the words of `late`.
  absl::StatusOr<std::chrono::milliseconds> NextWait(absl::string_view late) const {
    if (is_stopped != nullptr && *is_stopped) {
      return absl::CancelledError(
          "it was broken off: the agent stops, the daemon takes the task back, or has a newer one");
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return absl::DeadlineExceededError(late);
    return std::min(left, kLookEvery);
  }
};

}  // namespace coppice

#endif  // COPPICE_AGENTS_NODE_MEASURING_LIMIT_H_
