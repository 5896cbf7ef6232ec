#include "daemon/mapping/search/dense/dense_orders.h"

#include <numeric>
#include <utility>

namespace coppice {

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
