// Annealing of dense problems by sweeps, the engine of the memetic search (algorithm/memetic.cc).
//
// A full sweep looks at all pairs of free ranks. Below the temperature at which a solution freezes
// nearly all swaps are hopeless, and stay so for a while: a full sweep therefore notes the pairs
// that could be accepted at all, and the next kSweepsPerScan sweeps look at these alone.
//
//     acceptance   50 %     30 %     10 %      1 %     0.1 %  0.01 %
//     temperature  |--------|--------|start----|middle--|-----|end
//     pairs noted  all                          a tenth        a hundredth
//
// Departures from textbook annealing: sweeps are systematic (Connolly 1990), and between two scans
// a pair that becomes good is not seen.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_ANNEAL_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_ANNEAL_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/mapping/search/dense/dense_state.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// The three temperatures of a problem, by the share of swaps that are accepted although they cost:
// at `start` a tenth, at `middle` a hundredth, at `end` one in 5,000. In the units of costs.
struct DenseTemperatures {
  double start = 1, middle = 1, end = 1;
};

// Measured on one quick run with `state`, a random order of at least two ranks, which is left where
// the run ends: a first solution of sorts. 40 to 200 sweeps over all pairs, O(n) each.
DenseTemperatures MeasureTemperatures(DenseState& state, Xoshiro& random,
                                      const SearchControl& control);

// Keeps its memory from run to run. Not thread-safe.
class DenseAnnealer final {
 public:
  // Sweeps over swaps among `free` ranks, temperatures falling from `from` to `to` in equal
  // ratios. False: stopped by `control` on the way.
  bool Run(DenseState& state, absl::Span<const uint32_t> free, double from, double to,
           uint32_t sweeps, Xoshiro& random, const SearchControl& control);

 private:
  friend DenseTemperatures MeasureTemperatures(DenseState&, Xoshiro&, const SearchControl&);
  static constexpr uint32_t kSweepsPerScan = 10;

  bool Scan(DenseState& state, absl::Span<const uint32_t> free, double temperature, Xoshiro& random,
            const SearchControl& control);
  void Consider(DenseState& state, uint32_t r, uint32_t s, double delta, double temperature,
                Xoshiro& random);

  std::vector<std::pair<uint16_t, uint16_t>> hopeful_;
  uint64_t paid_ = 0;  // swaps of the last sweep that raised the cost
};

// One annealing chain as GraphHunter runs them (Baranov 2022, "Parallel algorithms"): random swaps,
// so many candidates at each temperature, two ways of cooling. What parallel annealing and the
// combined algorithm are made of.
//
//     proportional   T(k) = T(0) * (T(N) / T(0))^(k / N)
//     Cauchy         T(k) = T(0) / (1 + k * b),  b = (T(0) / T(N) - 1) / N

enum class DenseCooling : uint8_t { kProportional, kCauchy };

struct DenseSchedule {
  DenseCooling cooling = DenseCooling::kCauchy;
  double first = 1, last = 1;  // temperatures, in the units of costs
  uint64_t iterations = 1;     // from the first to the last
  uint32_t candidates = 50;    // for each iteration, which is one temperature

  double Temperature(uint64_t iteration) const;
};

// From the mean cost of random swaps of a random order down to a thousandth of it: above, nearly
// half of all swaps are taken, below, hardly any that costs. `size` >= 2.
DenseSchedule MeasuredSchedule(const DenseQap& qap, uint64_t seed);

// Iterations `from` (inclusive) to `to` of the schedule. Returns the best that was met, `state`
// itself included. Ends early when stopped.
DenseSolution RunChain(DenseState& state, const DenseSchedule& schedule, uint64_t from, uint64_t to,
                       Xoshiro& random, const SearchControl& control);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_ANNEAL_H_
