// One annealing chain as GraphHunter runs them (Baranov 2022, "Parallel algorithms"): random swaps,
// so many candidates at each temperature, two ways of cooling. What parallel annealing and the
// combined algorithm are made of.
//
//     proportional   T(k) = T(0) * (T(N) / T(0))^(k / N)
//     Cauchy         T(k) = T(0) / (1 + k * b),  b = (T(0) / T(N) - 1) / N
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_CHAIN_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_CHAIN_H_

#include <cstdint>

#include "daemon/mapping/search/dense/dense_orders.h"
#include "daemon/mapping/search/dense/dense_state.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

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

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_CHAIN_H_
