// A mapping problem as a dense quadratic assignment problem: n slots, n ranks (those beyond the
// pattern's are dummies that talk to nobody), a matrix of flows, one of distances, and a
// permutation. What all dense searches work on; knows no search.
//
//     flows F[rank][rank]       distances D[slot][slot]       cost = sum F[u][v] * D[p(u)][p(v)]
//                                                                    over u, v, loops included
//
// The numbers are kept as narrow as they fit: divided by their greatest common divisor, 8 or 16
// bits where differences and sums fit, then 32; doubles for the rest and for broken numbers. Where
// one matrix is symmetric the other is made so, F + F^T, which keeps all costs (times 2).
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_QAP_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_QAP_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// The inner loop of every dense search, the sum over k of (a[k] - b[k]) * (c[k] - d[k]): in four
// widths, each in a portable form and for AVX2; which one runs is decided when the program runs.
// Both forms of a width give equal sums, to the bit.

template <typename T>
using DenseSum = std::conditional_t<std::is_same_v<T, double>, double, int64_t>;

// Rows have `count` elements, a multiple of kDenseRowBytes / sizeof(T), from addresses that are
// multiples of kDenseRowBytes. Elements are >= 0, so that a difference fits where they fit; int16_t
// also wants count * greatest difference of a, b * greatest of c, d below 8 * 2^31: sums are kept
// in eight lanes of 32 bits.
template <typename T>
using RowProduct = DenseSum<T> (*)(const T* a, const T* b, const T* c, const T* d, size_t count);

inline constexpr size_t kDenseRowBytes = 64;

// One row of Taillard's update of all swap costs (algorithms.h): for each j < count
//     costs[j] += (ui - u[j]) * (vi - v[j])
// In doubles: exact for whole numbers whose sums are below 2^53.
using CostRowUpdate = void (*)(double* costs, const double* u, const double* v, double ui,
                               double vi, size_t count);

// The first index from `from` on with a cost below `bound`, or `count`.
using FirstBelow = size_t (*)(const double* costs, size_t from, size_t count, double bound);

struct DenseKernels {
  std::tuple<RowProduct<int8_t>, RowProduct<int16_t>, RowProduct<int32_t>, RowProduct<double>>
      products;
  CostRowUpdate update_row;
  FirstBelow first_below;
};
const DenseKernels& PortableKernels();
// Null where the machine has no AVX2.
const DenseKernels* Avx2Kernels();
const DenseKernels& BestKernels();

enum class DenseElement : uint8_t { kInt8, kInt16, kInt32, kDouble };

// A square matrix whose rows begin at multiples of kDenseRowBytes and are padded with zeros.
class DenseMatrix final {
 public:
  DenseMatrix() = default;
  DenseMatrix(uint32_t rows, size_t element_bytes)
      : row_lines_((rows * element_bytes + kDenseRowBytes - 1) / kDenseRowBytes),
        lines_(rows * row_lines_) {}

  bool empty() const { return lines_.empty(); }
  template <typename T>
  size_t row_elements() const {
    return row_lines_ * kDenseRowBytes / sizeof(T);
  }
  template <typename T>
  T* row(uint32_t r) {
    return reinterpret_cast<T*>(lines_.data() + r * row_lines_);
  }
  template <typename T>
  const T* row(uint32_t r) const {
    return reinterpret_cast<const T*>(lines_.data() + r * row_lines_);
  }

 private:
  struct alignas(kDenseRowBytes) Line {
    std::byte bytes[kDenseRowBytes];
  };
  size_t row_lines_ = 0;
  std::vector<Line> lines_;
};

// Immutable; thread-safe.
class DenseQap final {
 public:
  // 2 matrices of doubles take 256 MiB, 4 if asymmetric.
  static constexpr uint32_t kMaxSlots = 4096;

  // RESOURCE_EXHAUSTED, naming both numbers: more than kMaxSlots slots. O(slots^2).
  static absl::StatusOr<DenseQap> Of(const MappingProblem& problem);
  // The same from two matrices, row by row, of values >= 0. For problems that are born dense.
  static DenseQap OfMatrices(uint32_t size, std::vector<double> flows,
                             std::vector<double> distances);

  uint32_t size() const { return size_; }
  DenseElement element() const { return element_; }
  // One pass over rows is enough: F and D are symmetric.
  bool symmetric() const { return symmetric_; }
  // No loop counts: F's or D's diagonal is zero.
  bool hollow() const { return hollow_; }
  // Costs in this unit are the sums of the kept numbers.
  double unit() const { return unit_; }
  const DenseMatrix& flows() const { return flows_; }
  const DenseMatrix& distances() const { return distances_; }
  // F^T and D^T; empty if symmetric().
  const DenseMatrix& flows_transposed() const { return flows_transposed_; }
  const DenseMatrix& distances_transposed() const { return distances_transposed_; }

  // The whole sum, without unit(): what swap costs are differences of. O(n^2).
  double Cost(absl::Span<const uint32_t> order) const;

  DenseOrder OrderOf(const MappingProblem& problem, const Mapping& mapping) const;
  static Mapping MappingOf(const MappingProblem& problem, absl::Span<const uint32_t> order);

 private:
  DenseQap() = default;

  uint32_t size_ = 0;
  DenseElement element_ = DenseElement::kDouble;
  bool symmetric_ = true, hollow_ = true;
  double unit_ = 1;
  DenseMatrix flows_, distances_, flows_transposed_, distances_transposed_;
};

// Calls `visit` with a value of the type that `element` names.
template <typename Visit>
decltype(auto) VisitElement(DenseElement element, const Visit& visit) {
  switch (element) {
    case DenseElement::kInt8:
      return visit(int8_t{});
    case DenseElement::kInt16:
      return visit(int16_t{});
    case DenseElement::kInt32:
      return visit(int32_t{});
    default:
      return visit(double{});
  }
}

// One solution that a search walks with: swap costs in O(n) before moving, by one product over
// contiguous rows, because the distances are kept with their columns in the order of the ranks.
//
//     delta(r,s) = 2 * sum over k of (F[r][k] - F[s][k]) * (D[p(s)][p(k)] - D[p(r)][p(k)])
//                  less k = r and k = s, plus what loops and unequal directions bring
//                  (Taillard 1991, eq. 1, for symmetric F and D)
//
//     columns[slot][k] = D[slot][p(k)]: a swap of r and s exchanges two columns, O(n)
//
// Costs are sums of the kept numbers: without DenseQap::unit(). Not thread-safe; `qap` must outlive
// it.
class DenseState final {
 public:
  // `order` is a permutation. O(n^2).
  DenseState(const DenseQap& qap, DenseOrder order, const DenseKernels& kernels = BestKernels());
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
  const DenseKernels* kernels_;
  double (*delta_)(const DenseState&, uint32_t, uint32_t) = nullptr;
  void (*swap_)(DenseState&, uint32_t, uint32_t) = nullptr;
};

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

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_QAP_H_
