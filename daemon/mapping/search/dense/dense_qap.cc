#include "daemon/mapping/search/dense/dense_qap.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/mapping/search/random.h"

#if defined(__x86_64__)
#define COPPICE_AVX2 __attribute__((target("avx2")))
#endif

namespace coppice {
namespace {

template <typename T>
int64_t Whole(const T* a, const T* b, const T* c, const T* d, size_t count) {
  using Wide = std::conditional_t<sizeof(T) == 4, int64_t, int32_t>;  // holds one product
  int64_t sum = 0;
  for (size_t k = 0; k < count; ++k) {
    sum += (static_cast<Wide>(a[k]) - b[k]) * (static_cast<Wide>(c[k]) - d[k]);
  }
  return sum;
}

// In four lanes, as the vector form adds them.
double Real(const double* a, const double* b, const double* c, const double* d, size_t count) {
  std::array<double, 4> lanes{};
  for (size_t k = 0; k < count; k += 4) {
    for (size_t i = 0; i < 4; ++i) lanes[i] += (a[k + i] - b[k + i]) * (c[k + i] - d[k + i]);
  }
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

void CostRow(double* costs, const double* u, const double* v, double ui, double vi, size_t count) {
  for (size_t j = 0; j < count; ++j) costs[j] += (ui - u[j]) * (vi - v[j]);
}

size_t Below(const double* costs, size_t from, size_t count, double bound) {
  while (from < count && costs[from] >= bound) ++from;
  return from;
}

#if defined(__x86_64__)

COPPICE_AVX2 inline __m256i Load(const void* row) {
  return _mm256_load_si256(static_cast<const __m256i*>(row));
}

COPPICE_AVX2 inline int64_t SumOfInt32(__m256i lanes) {
  const __m256i wide = _mm256_add_epi64(_mm256_cvtepi32_epi64(_mm256_castsi256_si128(lanes)),
                                        _mm256_cvtepi32_epi64(_mm256_extracti128_si256(lanes, 1)));
  const __m128i half =
      _mm_add_epi64(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
  return _mm_cvtsi128_si64(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half)));
}

// |a - b| <= 127 as unsigned times c - d with the sign of a - b: two products of at most 127 * 127
// fit 16 bits.
COPPICE_AVX2 inline __m256i Int8Products(const int8_t* a, const int8_t* b, const int8_t* c,
                                         const int8_t* d) {
  const __m256i x = _mm256_sub_epi8(Load(a), Load(b)), y = _mm256_sub_epi8(Load(c), Load(d));
  return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(x), _mm256_sign_epi8(y, x)),
                           _mm256_set1_epi16(1));
}

COPPICE_AVX2 int64_t Int8Avx2(const int8_t* a, const int8_t* b, const int8_t* c, const int8_t* d,
                              size_t count) {
  __m256i even = _mm256_setzero_si256(), odd = even;
  for (size_t k = 0; k < count; k += 64) {
    even = _mm256_add_epi32(even, Int8Products(a + k, b + k, c + k, d + k));
    odd = _mm256_add_epi32(odd, Int8Products(a + k + 32, b + k + 32, c + k + 32, d + k + 32));
  }
  return SumOfInt32(_mm256_add_epi32(even, odd));
}

COPPICE_AVX2 inline __m256i Int16Products(const int16_t* a, const int16_t* b, const int16_t* c,
                                          const int16_t* d) {
  return _mm256_madd_epi16(_mm256_sub_epi16(Load(a), Load(b)), _mm256_sub_epi16(Load(c), Load(d)));
}

COPPICE_AVX2 int64_t Int16Avx2(const int16_t* a, const int16_t* b, const int16_t* c,
                               const int16_t* d, size_t count) {
  __m256i even = _mm256_setzero_si256(), odd = even;
  for (size_t k = 0; k < count; k += 32) {
    even = _mm256_add_epi32(even, Int16Products(a + k, b + k, c + k, d + k));
    odd = _mm256_add_epi32(odd, Int16Products(a + k + 16, b + k + 16, c + k + 16, d + k + 16));
  }
  return SumOfInt32(_mm256_add_epi32(even, odd));
}

COPPICE_AVX2 int64_t Int32Avx2(const int32_t* a, const int32_t* b, const int32_t* c,
                               const int32_t* d, size_t count) {
  __m256i even = _mm256_setzero_si256(), odd = even;
  for (size_t k = 0; k < count; k += 8) {
    const __m256i x = _mm256_sub_epi32(Load(a + k), Load(b + k));
    const __m256i y = _mm256_sub_epi32(Load(c + k), Load(d + k));
    even = _mm256_add_epi64(even, _mm256_mul_epi32(x, y));
    odd =
        _mm256_add_epi64(odd, _mm256_mul_epi32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(y, 32)));
  }
  const __m256i sum = _mm256_add_epi64(even, odd);
  const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  return _mm_cvtsi128_si64(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half)));
}

// Multiplies and adds apart: fused, it would round otherwise than the portable form.
COPPICE_AVX2 double RealAvx2(const double* a, const double* b, const double* c, const double* d,
                             size_t count) {
  __m256d lanes = _mm256_setzero_pd();
  for (size_t k = 0; k < count; k += 4) {
    const __m256d x = _mm256_sub_pd(_mm256_load_pd(a + k), _mm256_load_pd(b + k));
    const __m256d y = _mm256_sub_pd(_mm256_load_pd(c + k), _mm256_load_pd(d + k));
    lanes = _mm256_add_pd(lanes, _mm256_mul_pd(x, y));
  }
  const __m128d half = _mm_add_pd(_mm256_castpd256_pd128(lanes), _mm256_extractf128_pd(lanes, 1));
  return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
}

COPPICE_AVX2 void CostRowAvx2(double* costs, const double* u, const double* v, double ui, double vi,
                              size_t count) {
  const __m256d all_ui = _mm256_set1_pd(ui), all_vi = _mm256_set1_pd(vi);
  size_t j = 0;
  for (; j + 4 <= count; j += 4) {
    const __m256d product = _mm256_mul_pd(_mm256_sub_pd(all_ui, _mm256_loadu_pd(u + j)),
                                          _mm256_sub_pd(all_vi, _mm256_loadu_pd(v + j)));
    _mm256_storeu_pd(costs + j, _mm256_add_pd(_mm256_loadu_pd(costs + j), product));
  }
  for (; j < count; ++j) costs[j] += (ui - u[j]) * (vi - v[j]);
}

COPPICE_AVX2 size_t BelowAvx2(const double* costs, size_t from, size_t count, double bound) {
  const __m256d bounds = _mm256_set1_pd(bound);
  for (; from + 4 <= count; from += 4) {
    const int below =
        _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(costs + from), bounds, _CMP_LT_OQ));
    if (below != 0) return from + static_cast<size_t>(__builtin_ctz(below));
  }
  return Below(costs, from, count, bound);
}

#endif

// Square, row by row.
struct Values {
  uint32_t size;
  std::vector<double>& cells;

  double at(uint32_t r, uint32_t c) const { return cells[static_cast<size_t>(r) * size + c]; }
  double& at(uint32_t r, uint32_t c) { return cells[static_cast<size_t>(r) * size + c]; }

  bool symmetric() const {
    for (uint32_t r = 0; r < size; ++r) {
      for (uint32_t c = 0; c < r; ++c) {
        if (at(r, c) != at(c, r)) return false;
      }
    }
    return true;
  }
  bool hollow() const {
    for (uint32_t r = 0; r < size; ++r) {
      if (at(r, r) != 0) return false;
    }
    return true;
  }
  void AddTransposed() {
    for (uint32_t r = 0; r < size; ++r) {
      for (uint32_t c = 0; c <= r; ++c) at(r, c) = at(c, r) = at(r, c) + at(c, r);
    }
  }
  double greatest() const { return *std::max_element(cells.begin(), cells.end()); }
};

// The greatest number that divides all values a whole number of times; 0 if one is broken.
double CommonDivisor(const std::vector<double>& values) {
  uint64_t divisor = 0;
  for (const double value : values) {
    if (value != std::floor(value) || value > 0x1.0p53) return 0;
    if (value != 0 && divisor != 1) divisor = std::gcd(divisor, static_cast<uint64_t>(value));
  }
  return divisor == 0 ? 1 : static_cast<double>(divisor);
}

DenseElement NarrowestElement(uint32_t size, double flow, double distance) {
  if (flow <= 127 && distance <= 127) return DenseElement::kInt8;
  const double sum = flow * distance * (size + kDenseRowBytes);
  if (flow <= 32767 && distance <= 32767 && sum < 8 * 0x1.0p31) return DenseElement::kInt16;
  if (flow < 0x1.0p31 && distance < 0x1.0p31 && sum * size < 0x1.0p62) return DenseElement::kInt32;
  return DenseElement::kDouble;
}

DenseMatrix Kept(DenseElement element, const Values& values, bool transposed) {
  return VisitElement(element, [&](auto kind) {
    using T = decltype(kind);
    DenseMatrix matrix(values.size, sizeof(T));
    for (uint32_t r = 0; r < values.size; ++r) {
      T* const row = matrix.row<T>(r);
      for (uint32_t c = 0; c < values.size; ++c) {
        row[c] = static_cast<T>(transposed ? values.at(c, r) : values.at(r, c));
      }
    }
    return matrix;
  });
}

template <typename T>
double WholeCost(const DenseQap& qap, absl::Span<const uint32_t> order) {
  DenseSum<T> cost = 0;
  for (uint32_t u = 0; u < qap.size(); ++u) {
    const T* const flows = qap.flows().row<T>(u);
    const T* const distances = qap.distances().row<T>(order[u]);
    for (uint32_t v = 0; v < qap.size(); ++v) {
      cost += static_cast<DenseSum<T>>(flows[v]) * distances[order[v]];
    }
  }
  return static_cast<double>(cost);
}

}  // namespace

const DenseKernels& PortableKernels() {
  static constexpr DenseKernels kernels = {
      {Whole<int8_t>, Whole<int16_t>, Whole<int32_t>, Real}, CostRow, Below};
  return kernels;
}

const DenseKernels* Avx2Kernels() {
#if defined(__x86_64__)
  static constexpr DenseKernels kernels = {
      {Int8Avx2, Int16Avx2, Int32Avx2, RealAvx2}, CostRowAvx2, BelowAvx2};
  return __builtin_cpu_supports("avx2") != 0 ? &kernels : nullptr;
#else
  return nullptr;
#endif
}

const DenseKernels& BestKernels() {
  const DenseKernels* const fast = Avx2Kernels();
  return fast != nullptr ? *fast : PortableKernels();
}

absl::StatusOr<DenseQap> DenseQap::Of(const MappingProblem& problem) {
  const Places& places = *problem.places;
  const Pattern& pattern = *problem.pattern;
  const uint32_t size = places.slot_count();
  if (size > kMaxSlots) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "%d slots are too many for a dense search, which keeps a matrix of all pairs of slots: it "
        "takes %d; choose an algorithm for sparse patterns",
        size, kMaxSlots));
  }
  std::vector<double> flows(static_cast<size_t>(size) * size), distances(flows.size());
  for (uint32_t u = 0; u < pattern.rank_count(); ++u) {
    double* const row = &flows[static_cast<size_t>(u) * size];
    for (const Exchange& exchange : pattern.exchanges(u)) row[exchange.peer] = exchange.out_bytes;
    row[u] = pattern.self_bytes(u);
  }
  std::visit(
      [&](const auto& distance) {
        for (uint32_t a = 0; a < size; ++a) {
          for (uint32_t b = 0; b < size; ++b) {
            distances[static_cast<size_t>(a) * size + b] =
                distance(places.place_of_slot(a).value(), places.place_of_slot(b).value());
          }
        }
      },
      problem.distances->form());
  return OfMatrices(size, std::move(flows), std::move(distances));
}

DenseQap DenseQap::OfMatrices(uint32_t size, std::vector<double> flows,
                              std::vector<double> distances) {
  DenseQap qap;
  qap.size_ = size;
  Values f{size, flows}, d{size, distances};
  const bool f_symmetric = f.symmetric(), d_symmetric = d.symmetric();
  qap.symmetric_ = f_symmetric || d_symmetric;
  if (qap.symmetric_ && !(f_symmetric && d_symmetric)) {
    (f_symmetric ? d : f).AddTransposed();
    qap.unit_ = 0.5;
  }
  qap.hollow_ = f.hollow() || d.hollow();
  if (qap.hollow_) {
    for (uint32_t r = 0; r < size; ++r) f.at(r, r) = d.at(r, r) = 0;
  }
  const double f_divisor = CommonDivisor(flows), d_divisor = CommonDivisor(distances);
  if (f_divisor > 0 && d_divisor > 0) {
    for (double& value : flows) value /= f_divisor;
    for (double& value : distances) value /= d_divisor;
    qap.unit_ *= f_divisor * d_divisor;
    qap.element_ = NarrowestElement(size, f.greatest(), d.greatest());
  }
  qap.flows_ = Kept(qap.element_, f, false);
  qap.distances_ = Kept(qap.element_, d, false);
  if (!qap.symmetric_) {
    qap.flows_transposed_ = Kept(qap.element_, f, true);
    qap.distances_transposed_ = Kept(qap.element_, d, true);
  }
  return qap;
}

double DenseQap::Cost(absl::Span<const uint32_t> order) const {
  return VisitElement(element_, [&](auto kind) { return WholeCost<decltype(kind)>(*this, order); });
}

DenseOrder DenseQap::OrderOf(const MappingProblem& problem, const Mapping& mapping) const {
  DenseOrder order = AssignSlots(*problem.places, mapping);
  std::vector<bool> taken(size_);
  for (const uint32_t slot : order) taken[slot] = true;
  for (uint32_t slot = 0; slot < size_; ++slot) {
    if (!taken[slot]) order.push_back(slot);
  }
  return order;
}

Mapping DenseQap::MappingOf(const MappingProblem& problem, absl::Span<const uint32_t> order) {
  Mapping mapping;
  mapping.reserve(problem.rank_count());
  for (const uint32_t slot : order.subspan(0, problem.rank_count())) {
    mapping.push_back(problem.places->place_of_slot(slot));
  }
  return mapping;
}

DenseState::DenseState(const DenseQap& qap, DenseOrder order, const DenseKernels& kernels)
    : qap_(&qap), kernels_(&kernels) {
  VisitElement(qap.element(), [&](auto kind) {
    using T = decltype(kind);
    columns_ = DenseMatrix(qap.size(), sizeof(T));
    if (!qap.symmetric()) columns_transposed_ = DenseMatrix(qap.size(), sizeof(T));
    delta_ = DeltaOf<T>;
    swap_ = SwapColumns<T>;
  });
  Reset(std::move(order));
}

void DenseState::Reset(DenseOrder order) {
  order_ = std::move(order);
  cost_ = qap_->Cost(order_);
  VisitElement(qap_->element(), [&](auto kind) {
    using T = decltype(kind);
    Fill<T>(columns_, qap_->distances());
    if (!qap_->symmetric()) Fill<T>(columns_transposed_, qap_->distances_transposed());
  });
}

template <typename T>
void DenseState::Fill(DenseMatrix& columns, const DenseMatrix& distances) const {
  for (uint32_t slot = 0; slot < size(); ++slot) {
    T* const row = columns.row<T>(slot);
    const T* const from = distances.row<T>(slot);
    for (uint32_t k = 0; k < size(); ++k) row[k] = from[order_[k]];
  }
}

template <typename T>
double DenseState::DeltaOf(const DenseState& state, uint32_t r, uint32_t s) {
  using Sum = DenseSum<T>;
  const DenseQap& qap = *state.qap_;
  const auto product = std::get<RowProduct<T>>(state.kernels_->products);
  const size_t count = state.columns_.row_elements<T>();
  const T* const fr = qap.flows().row<T>(r);
  const T* const fs = qap.flows().row<T>(s);
  const T* const dr = state.columns_.row<T>(state.order_[r]);
  const T* const ds = state.columns_.row<T>(state.order_[s]);
  Sum sum = product(fr, fs, ds, dr, count);
  if (qap.symmetric() && qap.hollow()) {
    // Both terms that must go are -F[r][s] * D[p(r)][p(s)].
    return static_cast<double>(2 * (sum + 2 * static_cast<Sum>(fr[s]) * dr[s]));
  }
  const auto term = [](const T* a, const T* b, const T* c, const T* d, uint32_t k) {
    return (static_cast<Sum>(a[k]) - b[k]) * (static_cast<Sum>(c[k]) - d[k]);
  };
  sum -= term(fr, fs, ds, dr, r) + term(fr, fs, ds, dr, s);
  const Sum loops = (static_cast<Sum>(fr[r]) - fs[s]) * (static_cast<Sum>(ds[s]) - dr[r]);
  if (qap.symmetric()) return static_cast<double>(2 * sum + loops);

  const T* const gr = qap.flows_transposed().row<T>(r);
  const T* const gs = qap.flows_transposed().row<T>(s);
  const T* const er = state.columns_transposed_.row<T>(state.order_[r]);
  const T* const es = state.columns_transposed_.row<T>(state.order_[s]);
  sum += product(gr, gs, es, er, count);
  sum -= term(gr, gs, es, er, r) + term(gr, gs, es, er, s);
  const Sum between = (static_cast<Sum>(fr[s]) - fs[r]) * (static_cast<Sum>(ds[r]) - dr[s]);
  return static_cast<double>(sum + loops + between);
}

void DenseState::Differences(uint32_t r, uint32_t s, bool transposed, double* u, double* v) const {
  VisitElement(qap_->element(), [&](auto kind) {
    using T = decltype(kind);
    const DenseMatrix& flows = transposed ? qap_->flows_transposed() : qap_->flows();
    const DenseMatrix& columns = transposed ? columns_transposed_ : columns_;
    const T *const fr = flows.row<T>(r), *const fs = flows.row<T>(s);
    const T *const dr = columns.row<T>(order_[r]), *const ds = columns.row<T>(order_[s]);
    for (uint32_t k = 0; k < size(); ++k) {
      u[k] = static_cast<double>(fr[k]) - static_cast<double>(fs[k]);
      v[k] = static_cast<double>(ds[k]) - static_cast<double>(dr[k]);
    }
  });
}

template <typename T>
void DenseState::SwapColumns(DenseState& state, uint32_t r, uint32_t s) {
  const uint32_t size = state.size();
  const auto exchange = [&](DenseMatrix& columns) {
    const size_t step = columns.row_elements<T>();
    T* at = columns.row<T>(0);
    for (uint32_t slot = 0; slot < size; ++slot, at += step) std::swap(at[r], at[s]);
  };
  exchange(state.columns_);
  if (!state.columns_transposed_.empty()) exchange(state.columns_transposed_);
}

DenseOrder RandomDenseOrder(uint32_t size, Xoshiro& random) {
  DenseOrder order = Numbers(size);
  Shuffle(order, random);
  return order;
}

void DescendDense(DenseState& state, const SearchControl& control) {
  // In doubles that are not whole, rounding could turn in circles.
  const double least = state.qap().element() == DenseElement::kDouble ? 1e-12 * state.cost() : 0;
  for (bool better = true; better;) {
    better = false;
    for (uint32_t r = 1; r < state.size(); ++r) {
      if (control.stopped()) return;
      for (uint32_t s = 0; s < r; ++s) {
        const double delta = state.Delta(r, s);
        if (delta >= -least) continue;
        state.Swap(r, s, delta);
        better = true;
      }
    }
  }
}

void DenseBest::Report(const DenseOrder& order, double cost) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (cost >= cost_) return;
  cost_ = cost;
  control_.Offer(DenseQap::MappingOf(problem_, order));
}

}  // namespace coppice
