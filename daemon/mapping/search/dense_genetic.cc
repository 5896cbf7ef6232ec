#include "daemon/mapping/search/dense_genetic.h"

#include <algorithm>
#include <utility>

#include "daemon/mapping/search/logical_workers.h"

namespace coppice {
namespace {

bool Cheaper(const DenseSolution& a, const DenseSolution& b) { return a.cost < b.cost; }

// A child of two of the bests for each population: what the master sends.
std::vector<DenseSolution> Offspring(const std::vector<DenseSolution>& bests,
                                     const DenseEvolution& evolution, const DenseQap& qap,
                                     Xoshiro& random) {
  const auto count = static_cast<uint32_t>(bests.size());
  std::vector<DenseSolution> children;
  for (uint32_t i = 0; i < count; ++i) {
    DenseOrder order =
        OrderCrossover(bests[random.Below(count)].order, bests[random.Below(count)].order, random);
    Mutate(order, evolution.mutation, random);
    const double cost = qap.Cost(order);
    children.push_back({std::move(order), cost});
  }
  return children;
}

}  // namespace

DenseOrder OrderCrossover(const DenseOrder& a, const DenseOrder& b, Xoshiro& random) {
  const auto size = static_cast<uint32_t>(a.size());
  uint32_t begin = random.Below(size), end = random.Below(size);
  if (begin > end) std::swap(begin, end);
  DenseOrder child = a;
  std::vector<bool> kept(size);
  for (uint32_t i = begin; i <= end; ++i) kept[a[i]] = true;
  uint32_t at = 0;
  for (const uint32_t slot : b) {
    if (kept[slot]) continue;
    if (at == begin) at = end + 1;
    child[at++] = slot;
  }
  return child;
}

void Mutate(DenseOrder& order, double mutation, Xoshiro& random) {
  const auto size = static_cast<uint32_t>(order.size());
  while (random.Unit() < mutation) std::swap(order[random.Below(size)], order[random.Below(size)]);
}

void DenseGenetic::Add(DenseOrder order) {
  const double cost = qap_.Cost(order);
  population_.push_back({std::move(order), cost});
}

const DenseSolution& DenseGenetic::best() const {
  return *std::min_element(population_.begin(), population_.end(), Cheaper);
}

const DenseSolution& DenseGenetic::Choose() {
  const auto size = static_cast<uint32_t>(population_.size());
  const DenseSolution &a = population_[random_.Below(size)], &b = population_[random_.Below(size)];
  return Cheaper(b, a) ? b : a;
}

void DenseGenetic::Breed(const SearchControl& control) {
  std::vector<DenseSolution> children;
  for (size_t i = 0; i < population_.size() / 2 && !control.stopped(); ++i) {
    const DenseSolution &mother = Choose(), &father = Choose();
    DenseOrder order = OrderCrossover(mother.order, father.order, random_);
    Mutate(order, mutation_, random_);
    const double cost = qap_.Cost(order);
    children.push_back({std::move(order), cost});
  }
  std::stable_sort(population_.begin(), population_.end(), Cheaper);
  std::move(children.begin(), children.end(),
            population_.end() - static_cast<std::ptrdiff_t>(children.size()));
}

void DenseGenetic::Receive(const DenseSolution& immigrant) {
  auto worst = std::max_element(population_.begin(), population_.end(), Cheaper);
  if (Cheaper(immigrant, *worst)) *worst = immigrant;
}

DenseSolution Evolve(std::vector<DenseGenetic>& populations, const DenseEvolution& evolution,
                     const DenseQap& qap, const SearchControl& control, DenseBest& reported) {
  const auto count = static_cast<uint32_t>(populations.size());
  Xoshiro master(WorkerSeed(evolution.seed, 3, 0));
  std::vector<DenseSolution> bests(count);
  const auto collect = [&] {
    for (uint32_t i = 0; i < count; ++i) {
      bests[i] = populations[i].best();
      reported.Report(bests[i].order, bests[i].cost);
    }
  };
  collect();
  for (uint64_t generation = 0; generation < evolution.generations; ++generation) {
    if (control.stopped()) break;
    RunLogicalWorkers(evolution.threads, count, [&](uint32_t i) { populations[i].Breed(control); });
    collect();
    const bool ring = evolution.scheme == DenseScheme::kRing;
    const std::vector<DenseSolution> sent = ring ? bests : Offspring(bests, evolution, qap, master);
    for (uint32_t i = 0; i < count; ++i) populations[(i + ring) % count].Receive(sent[i]);
  }
  collect();
  return *std::min_element(bests.begin(), bests.end(), Cheaper);
}

}  // namespace coppice
