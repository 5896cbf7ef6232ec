// What dense searches do with whole solutions: make them, keep the best, tell the caller.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_ORDERS_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_ORDERS_H_

#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/dense/dense_solution.h"
#include "daemon/mapping/search/dense/dense_state.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

DenseOrder RandomDenseOrder(uint32_t size, Xoshiro& random);

// Swaps as long as one lowers the cost, in the order of the pairs, or until stopped. O(n^3) for
// each pass.
void DescendDense(DenseState& state, const SearchControl& control);

// The best solution that any thread has found so far, offered to the caller as it improves.
// Thread-safe.
class DenseBest final {
 public:
  DenseBest(const MappingProblem& problem, const SearchControl& control)
      : problem_(problem), control_(control) {}
  void Report(const DenseOrder& order, double cost);

 private:
  const MappingProblem& problem_;
  const SearchControl& control_;
  std::mutex mutex_;
  double cost_ = std::numeric_limits<double>::infinity();  // by mutex_
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_ORDERS_H_
