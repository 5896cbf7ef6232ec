// A mean that forgets: what was measured a time t ago weighs e^(-t/T).
//
//     mean = sum over intervals of rate * w / sum of w,   w = e^(-age of its end / T) -
//                                                             e^(-age of its begin / T)
//
// Exact for intervals of any length, and from the first one on: it is never drawn towards an
// arbitrary start. Time in which nothing was measured lets what is known fade, not change.
#ifndef COPPICE_DAEMON_MANAGER_LOAD_MOVING_AVERAGE_H_
#define COPPICE_DAEMON_MANAGER_LOAD_MOVING_AVERAGE_H_

#include <algorithm>
#include <cmath>

namespace coppice {

class MovingAverage {
 public:
  // `rate` held for so many seconds, up to now. Both at least 0; the constant is above 0.
  void Add(double rate, double seconds, double constant_seconds) {
    const double kept = std::exp(-seconds / constant_seconds);
    sum_ = sum_ * kept + rate * (1 - kept);
    weight_ = weight_ * kept + (1 - kept);
  }
  // Nothing is known of so many seconds.
  void Skip(double seconds, double constant_seconds) {
    const double kept = std::exp(-seconds / constant_seconds);
    sum_ *= kept;
    weight_ *= kept;
  }
  bool empty() const { return weight_ <= kLeastWeight; }
  double value() const { return empty() ? 0 : std::max(sum_ / weight_, 0.0); }

 private:
  // Below it the quotient of what has faded is noise.
  static constexpr double kLeastWeight = 1e-12;
  double sum_ = 0, weight_ = 0;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_LOAD_MOVING_AVERAGE_H_
