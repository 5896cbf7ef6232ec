// What others send over one channel: packets of one size that arrive at random or in step, drawn
// only when somebody looks.
//
// Before a collective's first packet the channel has been busy for ever. What is then left in its
// queue is drawn at once from the stationary distribution, with no warm-up: for Poisson arrivals at
// utilisation u and constant service D, the unfinished work is the sum of N uniform shares of D,
// P(N = n) = (1 - u) u^n (Pollaczek-Khinchine; L. Kleinrock, "Queueing Systems" 1, 5.12). Its mean
// is D u / (2 (1 - u)), the w(u) of the cost model.
#ifndef COPPICE_DAEMON_SIMULATION_NOISE_H_
#define COPPICE_DAEMON_SIMULATION_NOISE_H_

#include <cstdint>

#include "daemon/simulation/simulator.h"

namespace coppice {

// Random numbers of one channel: SplitMix64 (G. Steele et al., OOPSLA 2014), its state from seed
// and channel alone, so that a channel sees the same noise whatever trees cross it.
class RandomStream final {
 public:
  RandomStream(uint64_t seed, uint64_t stream) : state_(Mix(seed) ^ Mix(~stream)) {}
  double Uniform() {  // [0, 1)
    state_ += kStep;
    return static_cast<double>(Mix(state_) >> 11) * 0x1p-53;
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  uint64_t state_;
};

class Noise final {
 public:
  // `service_us` is how long one packet holds the channel, `share` in [0, 1) of the time.
  Noise(NoisePattern pattern, double share, double service_us, RandomStream random);

  // Starts afresh at `now`, in equilibrium. Returns the work that is then unfinished.
  double Begin(double now);

  // When the next packet arrives; infinite without noise.
  double next_us() const { return next_us_; }
  // Lets it arrive and draws the one after it.
  void Advance();

  double service_us() const { return service_us_; }
  // After a pause this long, what is in the queue no longer depends on what was there before it.
  double forgets_after_us() const { return forgets_after_us_; }

 private:
  double Gap();

  NoisePattern pattern_;
  double share_, service_us_, gap_us_ = 0, forgets_after_us_ = 0, next_us_;
  RandomStream random_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_SIMULATION_NOISE_H_
