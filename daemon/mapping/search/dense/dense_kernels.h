// The inner loop of every dense quadratic assignment search: the product of two differences of
// rows. Knows rows of numbers only.
//
//     sum over k of (a[k] - b[k]) * (c[k] - d[k])
//
// Four widths, each in a portable form and for AVX2; which one runs is decided when the program
// runs, so that one binary serves every x86-64. Both forms of a width give equal sums, to the bit.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_KERNELS_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace coppice {

template <typename T>
using DenseSum = std::conditional_t<std::is_same_v<T, double>, double, int64_t>;

// Rows have `count` elements, a multiple of kDenseRowBytes / sizeof(T), from addresses that are
// multiples of kDenseRowBytes. Elements are >= 0, so that a difference fits where they fit; int16_t
// also wants count * greatest difference of a, b * greatest of c, d below 8 * 2^31: sums are kept
// in eight lanes of 32 bits.
template <typename T>
using RowProduct = DenseSum<T> (*)(const T* a, const T* b, const T* c, const T* d, size_t count);

inline constexpr size_t kDenseRowBytes = 64;

// T is int8_t, int16_t, int32_t or double.
template <typename T>
RowProduct<T> PortableRowProduct();
// Null where the machine has no AVX2.
template <typename T>
RowProduct<T> Avx2RowProduct();

template <typename T>
RowProduct<T> BestRowProduct() {
  const RowProduct<T> fast = Avx2RowProduct<T>();
  return fast != nullptr ? fast : PortableRowProduct<T>();
}

// One row of Taillard's update of all swap costs (algorithms.h): for each j < count
//     costs[j] += (ui - u[j]) * (vi - v[j])
// In doubles: exact for whole numbers whose sums are below 2^53.
using CostRowUpdate = void (*)(double* costs, const double* u, const double* v, double ui,
                               double vi, size_t count);
CostRowUpdate PortableCostRowUpdate();
CostRowUpdate Avx2CostRowUpdate();

// The first index from `from` on with a cost below `bound`, or `count`.
using FirstBelow = size_t (*)(const double* costs, size_t from, size_t count, double bound);
FirstBelow PortableFirstBelow();
FirstBelow Avx2FirstBelow();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_KERNELS_H_
