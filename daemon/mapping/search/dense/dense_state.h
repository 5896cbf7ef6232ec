// One solution of a dense problem that a search walks with: swap costs in O(n) before moving, by
// one product over contiguous rows, because the distances are kept with their columns in the order
// of the ranks.
//
//     delta(r,s) = 2 * sum over k of (F[r][k] - F[s][k]) * (D[p(s)][p(k)] - D[p(r)][p(k)])
//                  less k = r and k = s, plus what loops and unequal directions bring
//                  (Taillard 1991, eq. 1, for symmetric F and D)
//
//     columns[slot][k] = D[slot][p(k)]: a swap of r and s exchanges two columns, O(n)
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_STATE_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_STATE_H_

#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "absl/types/span.h"
#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// Costs are sums of the kept numbers: without DenseQap::unit(). Not thread-safe; `qap` must outlive
// it.
class DenseState final {
 public:
  // `order` is a permutation. O(n^2).
  DenseState(const DenseQap& qap, DenseOrder order);
  // Another solution in the same memory. O(n^2).
  void Reset(DenseOrder order);

  const DenseQap& qap() const { return *qap_; }
  uint32_t size() const { return qap_->size(); }
  const DenseOrder& order() const { return order_; }
  double cost() const { return cost_; }

  // What the cost grows by if ranks r and s, two different ones, change places. O(n).
  double Delta(uint32_t r, uint32_t s) const { return delta_(*this, r, s); }
  // Does it; `delta` = Delta(r, s). O(n).
  void Swap(uint32_t r, uint32_t s, double delta) {
    swap_(*this, r, s);
    std::swap(order_[r], order_[s]);
    cost_ += delta;
  }

  // For Taillard's update of the costs of all other swaps after a swap of r and s: for each rank k
  //     u[k] = F[r][k] - F[s][k]     v[k] = D[p(s)][p(k)] - D[p(r)][p(k)]
  // or, transposed, F[k][r] and D[p(k)][p(r)], which an asymmetric problem wants too. O(n).
  void Differences(uint32_t r, uint32_t s, bool transposed, double* u, double* v) const;

  // Takes the portable kernels, for comparison.
  void UsePortableKernels();

 private:
  template <typename T>
  static double DeltaOf(const DenseState& state, uint32_t r, uint32_t s);
  template <typename T>
  static void SwapColumns(DenseState& state, uint32_t r, uint32_t s);
  template <typename T>
  void Fill(DenseMatrix& columns, const DenseMatrix& distances) const;

  const DenseQap* qap_;
  DenseOrder order_;
  double cost_ = 0;
  DenseMatrix columns_;             // D[slot][p(k)]
  DenseMatrix columns_transposed_;  // D[p(k)][slot]; empty if symmetric
  void (*product_)() = nullptr;     // a RowProduct of the problem's element
  double (*delta_)(const DenseState&, uint32_t, uint32_t) = nullptr;
  void (*swap_)(DenseState&, uint32_t, uint32_t) = nullptr;
};

// What dense searches do with whole solutions: make them, keep the best, tell the caller.

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

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_STATE_H_
