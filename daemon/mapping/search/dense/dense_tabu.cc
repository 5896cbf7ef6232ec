#include "daemon/mapping/search/dense/dense_tabu.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace coppice {
namespace {

constexpr int64_t kTermFactor = 8;        // of n: the longest time on the list
constexpr int64_t kAspirationFactor = 5;  // of n^2: what "very long" is
// The updates of broken or very large numbers add up their rounding: costs are counted anew.
constexpr int64_t kStepsPerRecount = 10'000;
// A kick is a tenth to a third of n random swaps: on tai60a and tai100a a twentieth falls back to
// where it was, and a half forgets too much.
constexpr uint32_t kMinKick = 10, kKickRange = 4;
constexpr int64_t kStepsPerReport = 256;

}  // namespace

DenseTabu::DenseTabu(const DenseQap& qap, DenseOrder order, uint64_t seed)
    : state_(qap, std::move(order)),
      random_(seed),
      best_{state_.order(), state_.cost()},
      since_kick_(state_.cost()),
      costs_(Row(qap.size()) + qap.size()),
      free_from_(static_cast<size_t>(qap.size()) * qap.size()),
      u_(qap.size()),
      v_(qap.size()),
      update_row_(Avx2CostRowUpdate()),
      first_below_(Avx2FirstBelow()) {
  if (update_row_ == nullptr) update_row_ = PortableCostRowUpdate();
  if (first_below_ == nullptr) first_below_ = PortableFirstBelow();
  if (!qap.symmetric()) u_transposed_ = v_transposed_ = u_;
  // All pairs become forgotten at different steps.
  for (size_t i = 0; i < free_from_.size(); ++i) free_from_[i] = -static_cast<int64_t>(i);
}

int64_t DenseTabu::Term() {
  const double x = random_.Unit();
  return static_cast<int64_t>(x * x * x * static_cast<double>(kTermFactor * state_.size()));
}

bool DenseTabu::Taboo(uint32_t r, uint32_t s) {
  return FreeFrom(r, state_.order()[s]) >= step_ && FreeFrom(s, state_.order()[r]) >= step_;
}

DenseTabu::Move DenseTabu::Forgotten(uint32_t rank) {
  const int64_t size = state_.size(), long_ago = step_ - kAspirationFactor * size * size;
  Move move;
  for (uint32_t other = 0; other < state_.size(); ++other) {
    if (other == rank || (FreeFrom(rank, state_.order()[other]) >= long_ago &&
                          FreeFrom(other, state_.order()[rank]) >= long_ago)) {
      continue;
    }
    const double cost = CostOf(rank, other);
    if (!move.found || cost < move.cost) move = {rank, other, cost, true};
  }
  return move;
}

DenseTabu::Move DenseTabu::Cheapest() {
  Move move;
  double bound = std::numeric_limits<double>::infinity();
  const double to_best = best_.cost - state_.cost();
  for (uint32_t r = 1; r < state_.size(); ++r) {
    const double* const row = &costs_[Row(r)];
    for (size_t at = first_below_(row, 0, r, bound); at < r;
         at = first_below_(row, at + 1, r, bound)) {
      const auto s = static_cast<uint32_t>(at);
      if (Taboo(r, s) && row[s] >= to_best) continue;
      move = {r, s, row[s], true};
      bound = row[s];
    }
  }
  return move;
}

void DenseTabu::Make(const Move& move) {
  const uint32_t r = move.r, s = move.s;
  FreeFrom(r, state_.order()[r]) = step_ + Term();
  FreeFrom(s, state_.order()[s]) = step_ + Term();
  state_.Swap(r, s, move.cost);
  UpdateCosts(r, s);
  if (state_.cost() < best_.cost) best_ = {state_.order(), state_.cost()};
  if (state_.cost() < since_kick_) {
    since_kick_ = state_.cost();
    improved_step_ = step_;
  }
}

void DenseTabu::Kick(const SearchControl& control) {
  const uint32_t size = state_.size();
  DenseOrder order = best_.order;
  const uint32_t least = std::max(2u, size / kMinKick);
  for (uint32_t left = least + random_.Below(std::max(1u, size / kKickRange)); left > 0; --left) {
    std::swap(order[random_.Below(size)], order[random_.Below(size)]);
  }
  state_.Reset(std::move(order));
  CountCosts(control);
  since_kick_ = state_.cost();
  improved_step_ = step_;
}

bool DenseTabu::CountCosts(const SearchControl& control) {
  counted_ = false;
  for (uint32_t r = 1; r < state_.size(); ++r) {
    if (control.stopped()) return false;
    for (uint32_t s = 0; s < r; ++s) CostOf(r, s) = state_.Delta(r, s);
  }
  counted_ = true;
  return true;
}

void DenseTabu::UpdateCosts(uint32_t r, uint32_t s) {
  const bool symmetric = state_.qap().symmetric();
  const double passes = symmetric ? 2 : 1;
  state_.Differences(r, s, false, u_.data(), v_.data());
  for (double& value : u_) value *= passes;
  for (uint32_t i = 1; i < state_.size(); ++i) {
    update_row_(&costs_[Row(i)], u_.data(), v_.data(), u_[i], v_[i], i);
  }
  if (!symmetric) {
    state_.Differences(r, s, true, u_transposed_.data(), v_transposed_.data());
    for (uint32_t i = 1; i < state_.size(); ++i) {
      update_row_(&costs_[Row(i)], u_transposed_.data(), v_transposed_.data(), u_transposed_[i],
                  v_transposed_[i], i);
    }
  }
  for (uint32_t k = 0; k < state_.size(); ++k) {
    if (k != r) CostOf(r, k) = state_.Delta(r, k);
    if (k != s) CostOf(s, k) = state_.Delta(s, k);
  }
}

void DenseTabu::Run(uint64_t steps, const SearchControl& control, DenseBest& best) {
  if (state_.size() < 2) return;
  const int64_t size = state_.size(), patience = size * size;
  double reported = std::numeric_limits<double>::infinity();
  for (uint64_t done = 0; done < steps; ++done) {
    if (control.stopped() || (!counted_ && !CountCosts(control))) break;
    ++step_;
    Move move = Forgotten(static_cast<uint32_t>(step_ % state_.size()));
    if (!move.found) move = Cheapest();
    if (move.found) Make(move);
    if (step_ % kStepsPerRecount == 0 && state_.qap().element() >= DenseElement::kInt32) {
      CountCosts(control);
    }
    if (step_ - improved_step_ > patience) Kick(control);
    if (step_ % kStepsPerReport == 0 && best_.cost < reported) {
      best.Report(best_.order, best_.cost);
      reported = best_.cost;
    }
  }
  best.Report(best_.order, best_.cost);
}

}  // namespace coppice
