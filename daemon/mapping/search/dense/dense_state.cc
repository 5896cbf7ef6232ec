#include "daemon/mapping/search/dense/dense_state.h"

#include <numeric>
#include <utility>

namespace coppice {
DenseState::DenseState(const DenseQap& qap, DenseOrder order) : qap_(&qap) {
  VisitElement(qap.element(), [&](auto kind) {
    using T = decltype(kind);
    columns_ = DenseMatrix(qap.size(), sizeof(T));
    if (!qap.symmetric()) columns_transposed_ = DenseMatrix(qap.size(), sizeof(T));
    product_ = reinterpret_cast<void (*)()>(BestRowProduct<T>());
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

void DenseState::UsePortableKernels() {
  VisitElement(qap_->element(), [&](auto kind) {
    product_ = reinterpret_cast<void (*)()>(PortableRowProduct<decltype(kind)>());
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
  const auto product = reinterpret_cast<RowProduct<T>>(state.product_);
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
  DenseOrder order(size);
  std::iota(order.begin(), order.end(), 0);
  for (uint32_t i = size; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
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
