#include "daemon/simulation/noise.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace coppice {
namespace {

// The queue's memory fades as exp(-t / r), r = D / (1 - sqrt(u))^2 (J. Cohen, "The Single Server
// Queue", III.7.3, an upper bound here, where service is constant). After 32 r nothing is left.
constexpr double kRelaxations = 32;

}  // namespace

Noise::Noise(NoisePattern pattern, double share, double service_us, RandomStream random)
    : pattern_(pattern),
      share_(share),
      service_us_(service_us),
      next_us_(std::numeric_limits<double>::infinity()),
      random_(random) {
  if (service_us_ <= 0) share_ = 0;  // an endless bandwidth has no share to lose
  if (share_ <= 0) return;
  gap_us_ = service_us_ / share_;
  const double rest = 1 - std::sqrt(share_);
  forgets_after_us_ = kRelaxations * service_us_ / (rest * rest);
}

double Noise::Gap() {
  return pattern_ == NoisePattern::kPeriodic ? gap_us_ : -gap_us_ * std::log1p(-random_.Uniform());
}

double Noise::Begin(double now) {
  if (share_ <= 0) return 0;
  if (pattern_ == NoisePattern::kPeriodic) {
    const double until_next = gap_us_ * random_.Uniform();
    next_us_ = now + until_next;
    return std::max(0.0, until_next - gap_us_ + service_us_);
  }
  double work_us = 0;
  while (random_.Uniform() < share_) work_us += service_us_ * random_.Uniform();
  next_us_ = now + Gap();
  return work_us;
}

void Noise::Advance() { next_us_ += Gap(); }

}  // namespace coppice
