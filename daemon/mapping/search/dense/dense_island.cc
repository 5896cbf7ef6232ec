#include "daemon/mapping/search/dense/dense_island.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace coppice {
namespace {

// At the middle temperature a solution this many times dearer than the best of its kind has frozen
// into another basin. Taillard's instances have basins at 2 to 4 times; within one, 15 % is much.
constexpr double kOtherBasin = 1.3;
// So many for each individual may be thrown away: a problem may have many basins, or a best of 0.
constexpr uint32_t kCullsPerIndividual = 3;
// What a child is reheated to, against the middle temperature: groups melt, the whole does not.
constexpr double kReheat = 1.5;
// One in so many of the ranks on which both parents agree is freed as well.
constexpr uint32_t kFreedShare = 10;

}  // namespace

DenseIsland::DenseIsland(const DenseQap& qap, const DenseIslandOptions& options, uint64_t seed,
                         const SearchControl& control, DenseBest& best)
    : options_(options),
      control_(control),
      best_(best),
      random_(seed),
      state_(qap, RandomDenseOrder(qap.size(), random_)),
      all_(qap.size()) {
  std::iota(all_.begin(), all_.end(), 0);
}

const DenseSolution& DenseIsland::best() const {
  const DenseSolution* best = &measured_;
  for (const DenseSolution& solution : population_) {
    if (solution.cost < best->cost) best = &solution;
  }
  return *best;
}

bool DenseIsland::known(double cost) const {
  return std::any_of(population_.begin(), population_.end(),
                     [&](const DenseSolution& solution) { return solution.cost == cost; });
}

void DenseIsland::Adopt(bool cooled) {
  if (cooled) DescendDense(state_, control_);
  population_.push_back({state_.order(), state_.cost()});
  best_.Report(state_.order(), state_.cost());
}

void DenseIsland::Measure() {
  temperatures_ = MeasureTemperatures(state_, random_, control_);
  DescendDense(state_, control_);
  measured_ = {state_.order(), state_.cost()};
  best_.Report(measured_.order, measured_.cost);
}

void DenseIsland::Settle(const DenseOrder& order) {
  state_.Reset(order);
  Adopt(annealer_.Run(state_, all_, temperatures_.middle, temperatures_.end, options_.sweeps,
                      random_, control_));
}

void DenseIsland::Populate() {
  const DenseTemperatures& t = temperatures_;
  double cheapest = std::numeric_limits<double>::infinity();  // at the middle temperature
  uint32_t culls_left = kCullsPerIndividual * options_.population;
  while (population_.size() < options_.population) {
    state_.Reset(RandomDenseOrder(state_.size(), random_));
    bool cooled =
        annealer_.Run(state_, all_, t.start, t.middle, options_.sweeps, random_, control_);
    const double middle_cost = state_.cost();
    if (cooled && culls_left > 0) {
      if (middle_cost > kOtherBasin * cheapest) {
        --culls_left;
        continue;
      }
      if (kOtherBasin * middle_cost < cheapest && !population_.empty()) {
        culls_left -= std::min(culls_left, static_cast<uint32_t>(population_.size()));
        population_.clear();
      }
    }
    cheapest = std::min(cheapest, middle_cost);
    cooled =
        cooled && annealer_.Run(state_, all_, t.middle, t.end, options_.sweeps, random_, control_);
    Adopt(cooled);
    if (!cooled) return;
  }
}

void DenseIsland::Cross(const DenseSolution& mother, const DenseSolution& father) {
  const uint32_t size = state_.size();
  std::vector<bool> loose(size);
  for (uint32_t r = 0; r < size; ++r) loose[r] = mother.order[r] != father.order[r];
  for (uint32_t i = 0; i < size / kFreedShare + 2; ++i) loose[random_.Below(size)] = true;
  std::vector<uint32_t> free;
  for (uint32_t r = 0; r < size; ++r) {
    if (loose[r]) free.push_back(r);
  }
  state_.Reset(mother.order);
  const DenseTemperatures& t = temperatures_;
  if (annealer_.Run(state_, free, kReheat * t.middle, t.end, options_.sweeps, random_, control_)) {
    DescendDense(state_, control_);
  }
}

void DenseIsland::Breed(uint32_t count) {
  const auto size = static_cast<uint32_t>(population_.size());
  for (uint32_t i = 0; i < count && size >= 2 && !stagnant() && !control_.stopped(); ++i) {
    const uint32_t mother = random_.Below(size);
    const uint32_t father = (mother + 1 + random_.Below(size - 1)) % size;
    Cross(population_[mother], population_[father]);
    DenseSolution& worse = population_[mother].cost > population_[father].cost
                               ? population_[mother]
                               : population_[father];
    ++idle_;
    if (state_.cost() >= worse.cost || known(state_.cost())) continue;
    worse = {state_.order(), state_.cost()};
    best_.Report(worse.order, worse.cost);
    idle_ = 0;
  }
}

void DenseIsland::Receive(const DenseSolution& immigrant) {
  const auto worst = std::max_element(population_.begin(), population_.end(),
                                      [](const auto& a, const auto& b) { return a.cost < b.cost; });
  if (immigrant.cost < worst->cost && !known(immigrant.cost)) *worst = immigrant;
}

}  // namespace coppice
