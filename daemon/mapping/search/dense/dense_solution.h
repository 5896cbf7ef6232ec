// A solution of a dense problem as a value: what searches hand to each other, within a process and
// between processes (search_control.h).
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_SOLUTION_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_SOLUTION_H_

#include <cstdint>
#include <limits>
#include <vector>

namespace coppice {

// The slot of every rank, dummies included: a permutation of 0..size-1.
using DenseOrder = std::vector<uint32_t>;

// A solution and its cost, in sums of the kept numbers (search/dense/dense_qap.h).
struct DenseSolution {
  DenseOrder order;
  double cost = std::numeric_limits<double>::infinity();
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_SOLUTION_H_
