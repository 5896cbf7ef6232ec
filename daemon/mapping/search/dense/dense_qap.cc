#include "daemon/mapping/search/dense/dense_qap.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace coppice {
namespace {

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

DenseMatrix::DenseMatrix(uint32_t rows, size_t element_bytes)
    : row_bytes_((rows * element_bytes + kDenseRowBytes - 1) / kDenseRowBytes * kDenseRowBytes),
      total_bytes_(rows * row_bytes_),
      bytes_(static_cast<std::byte*>(
          ::operator new (total_bytes_, std::align_val_t{kDenseRowBytes}))) {
  std::memset(bytes_.get(), 0, total_bytes_);
}

DenseMatrix::DenseMatrix(const DenseMatrix& other)
    : row_bytes_(other.row_bytes_), total_bytes_(other.total_bytes_) {
  if (other.empty()) return;
  bytes_.reset(
      static_cast<std::byte*>(::operator new (total_bytes_, std::align_val_t{kDenseRowBytes})));
  std::memcpy(bytes_.get(), other.bytes_.get(), total_bytes_);
}

DenseMatrix& DenseMatrix::operator=(const DenseMatrix& other) {
  if (this != &other) *this = DenseMatrix(other);
  return *this;
}

void DenseMatrix::Free::operator()(std::byte* bytes) const {
  ::operator delete (bytes, std::align_val_t{kDenseRowBytes});
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

}  // namespace coppice
