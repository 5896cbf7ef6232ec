// How often each method was called, with what outcome, and how long it took. Recording is three
// relaxed additions and no lock, so it may be done for every call; reading is for whoever looks at
// the daemon. Knows no transport and no way of showing the numbers.
#ifndef COPPICE_DAEMON_RPC_CALLS_METHOD_STATISTICS_H_
#define COPPICE_DAEMON_RPC_CALLS_METHOD_STATISTICS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace coppice {

inline constexpr size_t kStatusCodes = 17;
// Latencies up to 2^i us are in bucket i or an earlier one; the last has no bound. So it spans 1 us
// to 67 s, within a factor of two.
inline constexpr size_t kLatencyBuckets = 28;
absl::Duration LatencyBound(size_t bucket);  // infinite for the last
inline size_t LatencyBucket(int64_t nanoseconds) {
  if (nanoseconds <= 1000) return 0;
  const uint64_t microseconds = (static_cast<uint64_t>(nanoseconds) + 999) / 1000;  // rounded up
  return std::min<size_t>(std::bit_width(microseconds - 1), kLatencyBuckets - 1);
}

// The bucket of a histogram that this share of what it counts is within; none: it counts nothing.
std::optional<size_t> BucketOfShare(absl::Span<const uint64_t> counts, double share);

// One method's numbers as of some instant; a call that ends meanwhile may be in some of them only.
struct MethodNumbers {
  std::string name;                                    // "Trees.CreateTree"
  std::array<uint64_t, kStatusCodes> by_code = {};     // [absl::StatusCode] calls that have ended
  std::array<uint64_t, kLatencyBuckets> latency = {};  // of unary calls
  absl::Duration total_latency;
  bool is_stream = false;
  uint64_t open = 0;  // streams now

  uint64_t calls() const;
  // An upper bound of the latency that this share of the calls kept, zero without calls; infinite:
  // longer than the last bound.
  absl::Duration Quantile(double share) const;
};

// Thread-safe, but for Add.
class MethodStatistics final {
 public:
  class Method final {
   public:
    explicit Method(std::string name, bool is_stream)
        : name_(std::move(name)), is_stream_(is_stream) {}

    void Ended(absl::StatusCode code, int64_t nanoseconds) {
      Count(code);
      Add(latency_[LatencyBucket(nanoseconds)], 1);
      Add(total_ns_, static_cast<uint64_t>(nanoseconds));
    }
    // Of streams, which may last for days.
    void Opened() { Add(opened_, 1); }
    void Closed(absl::StatusCode code) { Count(code); }

    MethodNumbers Numbers() const;

   private:
    using Counter = std::atomic<uint64_t>;
    static void Add(Counter& counter, uint64_t amount) {
      counter.fetch_add(amount, std::memory_order_relaxed);
    }
    void Count(absl::StatusCode code) {
      const auto index = static_cast<size_t>(code);
      Add(by_code_[index < kStatusCodes ? index : static_cast<size_t>(absl::StatusCode::kUnknown)],
          1);
    }

    const std::string name_;
    const bool is_stream_;
    std::array<Counter, kStatusCodes> by_code_ = {};
    std::array<Counter, kLatencyBuckets> latency_ = {};
    Counter total_ns_ = 0, opened_ = 0;
  };

  // Before the first call, by one thread. The method lives as long as this.
  Method* AddUnary(absl::string_view name) {
    return &methods_.emplace_back(std::string(name), false);
  }
  Method* AddStream(absl::string_view name) {
    return &methods_.emplace_back(std::string(name), true);
  }

  // Of all methods, in the order in which they were added.
  std::vector<MethodNumbers> Numbers() const;

 private:
  std::deque<Method> methods_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_RPC_CALLS_METHOD_STATISTICS_H_
