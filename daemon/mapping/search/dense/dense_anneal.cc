#include "daemon/mapping/search/dense/dense_anneal.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace coppice {
namespace {

// A swap that costs more than this many times the temperature is hopeless: e^-10 = 1 in 22,000.
constexpr double kHopeless = 10;

}  // namespace

inline void DenseAnnealer::Consider(DenseState& state, uint32_t r, uint32_t s, double delta,
                                    double temperature, Xoshiro& random) {
  if (delta > 0 && random.Unit() >= std::exp(-delta / temperature)) return;
  // A swap that changes nothing is taken every other time: slots of one place are full of them.
  if (delta == 0 && (random() & 1) != 0) return;
  state.Swap(r, s, delta);
  paid_ += delta > 0;
}

bool DenseAnnealer::Scan(DenseState& state, absl::Span<const uint32_t> free, double temperature,
                         Xoshiro& random, const SearchControl& control) {
  hopeful_.clear();
  for (size_t i = 1; i < free.size(); ++i) {
    if (control.stopped()) return false;
    for (size_t j = 0; j < i; ++j) {
      const double delta = state.Delta(free[i], free[j]);
      if (delta >= kHopeless * temperature) continue;
      hopeful_.emplace_back(static_cast<uint16_t>(free[i]), static_cast<uint16_t>(free[j]));
      Consider(state, free[i], free[j], delta, temperature, random);
    }
  }
  return true;
}

bool DenseAnnealer::Run(DenseState& state, absl::Span<const uint32_t> free, double from, double to,
                        uint32_t sweeps, Xoshiro& random, const SearchControl& control) {
  const double ratio = sweeps > 1 ? std::pow(to / from, 1.0 / (sweeps - 1)) : 1;
  const uint64_t pairs = static_cast<uint64_t>(free.size()) * free.size() / 2;
  double temperature = from;
  uint32_t since_scan = kSweepsPerScan;
  for (uint32_t sweep = 0; sweep < sweeps; ++sweep, temperature *= ratio) {
    if (control.stopped()) return false;
    paid_ = 0;
    if (since_scan >= kSweepsPerScan) {
      if (!Scan(state, free, temperature, random, control)) return false;
      since_scan = hopeful_.size() * 4 > pairs ? kSweepsPerScan : 0;
      continue;
    }
    ++since_scan;
    for (const auto& [r, s] : hopeful_) {
      const double delta = state.Delta(r, s);
      if (delta < kHopeless * temperature) Consider(state, r, s, delta, temperature, random);
    }
  }
  return true;
}

DenseTemperatures MeasureTemperatures(DenseState& state, Xoshiro& random,
                                      const SearchControl& control) {
  constexpr double kRange = 1e-5;  // the last temperature against the first
  const DenseQap& qap = state.qap();
  const double pairs = 0.5 * qap.size() * (qap.size() - 1);
  const auto steps = static_cast<uint32_t>(std::clamp(2e7 / pairs, 40.0, 200.0));
  double highest = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    const uint32_t r = random.Below(qap.size());
    const uint32_t s = (r + 1 + random.Below(qap.size() - 1)) % qap.size();
    highest += std::abs(state.Delta(r, s)) / 1000;
  }
  DenseTemperatures temperatures{highest, highest, highest};
  if (highest == 0) return {1, 1, 1};

  std::vector<uint32_t> all(qap.size());
  std::iota(all.begin(), all.end(), 0);
  DenseAnnealer annealer;
  const double ratio = std::pow(kRange, 1.0 / (steps - 1));
  double temperature = highest;
  for (uint32_t step = 0; step < steps; ++step, temperature *= ratio) {
    if (!annealer.Run(state, all, temperature, temperature, 1, random, control)) break;
    const double share = static_cast<double>(annealer.paid_) / pairs;
    if (share > 0.1) temperatures.start = temperature;
    if (share > 0.01) temperatures.middle = temperature;
    if (share > 2e-4) temperatures.end = temperature;
  }
  return temperatures;
}

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
