#include "daemon/mapping/search/dense/dense_chain.h"

#include <cmath>

namespace coppice {

double DenseSchedule::Temperature(uint64_t iteration) const {
  const double share = static_cast<double>(iteration) / static_cast<double>(iterations);
  if (cooling == DenseCooling::kProportional) return first * std::pow(last / first, share);
  return first / (1 + share * (first / last - 1));
}

DenseSchedule MeasuredSchedule(const DenseQap& qap, uint64_t seed) {
  constexpr uint32_t kSwaps = 1000;
  Xoshiro random(seed);
  const DenseState state(qap, RandomDenseOrder(qap.size(), random));
  double mean = 0;
  for (uint32_t i = 0; i < kSwaps; ++i) {
    const uint32_t r = random.Below(qap.size());
    const uint32_t s = (r + 1 + random.Below(qap.size() - 1)) % qap.size();
    mean += std::abs(state.Delta(r, s)) / kSwaps;
  }
  DenseSchedule schedule;
  if (mean > 0) {
    schedule.first = mean;
    schedule.last = mean / 1000;
  }
  return schedule;
}

DenseSolution RunChain(DenseState& state, const DenseSchedule& schedule, uint64_t from, uint64_t to,
                       Xoshiro& random, const SearchControl& control) {
  const uint32_t size = state.size();
  DenseSolution best{state.order(), state.cost()};
  for (uint64_t iteration = from; iteration < to; ++iteration) {
    if (control.stopped()) break;
    const double temperature = schedule.Temperature(iteration);
    for (uint32_t i = 0; i < schedule.candidates; ++i) {
      const uint32_t r = random.Below(size);
      const uint32_t s = (r + 1 + random.Below(size - 1)) % size;
      const double delta = state.Delta(r, s);
      if (delta > 0 && random.Unit() >= std::exp(-delta / temperature)) continue;
      state.Swap(r, s, delta);
      if (state.cost() < best.cost) best = {state.order(), state.cost()};
    }
  }
  return best;
}

}  // namespace coppice
