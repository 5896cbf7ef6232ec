// How long to wait before something is tried again: twice as long each time up to a bound, less a
// random part of up to a half, so that those who lost the same server do not come back together.
#ifndef COPPICE_CLIENT_LIBRARY_RETRY_PAUSE_H_
#define COPPICE_CLIENT_LIBRARY_RETRY_PAUSE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace coppice {

class RetryPause final {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // `seed`: different for each of those that should not come back together.
  RetryPause(Milliseconds first, Milliseconds most, uint64_t seed)
      : first_(first), most_(most), next_(first), state_(seed) {}

  Milliseconds Next() {
    const Milliseconds whole = next_;
    next_ = std::min(whole * 2, most_);
    return whole - Milliseconds(static_cast<int64_t>(Random() % (whole.count() / 2 + 1)));
  }
  // It worked.
  void Reset() { next_ = first_; }

 private:
  // splitmix64 (Steele, Lea, Flood 2014).
  uint64_t Random() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  const Milliseconds first_, most_;
  Milliseconds next_;
  uint64_t state_;
};

}  // namespace coppice

#endif  // COPPICE_CLIENT_LIBRARY_RETRY_PAUSE_H_
