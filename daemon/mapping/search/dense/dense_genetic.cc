#include "daemon/mapping/search/dense/dense_genetic.h"

#include <algorithm>
#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/search_control.h"

namespace coppice {
namespace {

// A child that costs what another does is most likely the same: it is changed by swaps until chance
// says stop, four on average, so that a population of twins looks near and far.
constexpr double kTwinMutation = 0.8;

bool Cheaper(const DenseSolution& a, const DenseSolution& b) { return a.cost < b.cost; }

// A child of two of the bests for each population, its cost not yet known.
std::vector<DenseSolution> Offspring(const std::vector<DenseSolution>& bests, double mutation,
                                     Xoshiro& random) {
  const auto count = static_cast<uint32_t>(bests.size());
  std::vector<DenseSolution> children(count);
  for (DenseSolution& child : children) {
    const uint32_t father = random.Below(count), mother = random.Below(count);
    child.order = UniformCrossover(bests[mother].order, bests[father].order, random);
    Mutate(child.order, mutation, random);
  }
  return children;
}

// What comes to each population from the one before it, the first one's from another process.
absl::StatusOr<std::vector<DenseSolution>> FromTheRing(std::vector<DenseSolution> bests,
                                                       SearchTeam& team) {
  std::rotate(bests.begin(), bests.end() - 1, bests.end());
  RETURN_IF_ERROR(team.PassOn(bests.front()));
  return bests;
}

// What the master in process 0 hands out; whoever gets a child counts its cost.
absl::StatusOr<std::vector<DenseSolution>> FromTheMaster(const std::vector<DenseSolution>& bests,
                                                         const DenseEvolution& evolution,
                                                         const DenseQap& qap, Xoshiro& random,
                                                         SearchTeam& team) {
  const auto count = static_cast<uint32_t>(bests.size());
  ASSIGN_OR_RETURN(const std::vector<DenseSolution> all, team.Gather(bests));
  ASSIGN_OR_RETURN(std::vector<DenseSolution> children,
                   team.Scatter(Offspring(all, evolution.mutation, random), count));
  RunLogicalWorkers(evolution.threads, count,
                    [&](uint32_t i) { children[i].cost = qap.Cost(children[i].order); });
  return children;
}

}  // namespace

DenseOrder UniformCrossover(const DenseOrder& a, const DenseOrder& b, Xoshiro& random) {
  const auto size = static_cast<uint32_t>(a.size());
  std::vector<bool> taken(size);
  DenseOrder child(size, size);
  const auto take = [&](uint32_t rank, uint32_t slot) {
    if (child[rank] < size || taken[slot]) return;
    child[rank] = slot;
    taken[slot] = true;
  };
  for (uint32_t rank = 0; rank < size; ++rank) {
    if (a[rank] == b[rank]) take(rank, a[rank]);
  }
  for (const uint32_t rank : RandomDenseOrder(size, random)) {
    const bool first = (random() & 1) != 0;
    take(rank, first ? a[rank] : b[rank]);
    take(rank, first ? b[rank] : a[rank]);
  }
  const DenseOrder slots = RandomDenseOrder(size, random);
  auto next = slots.begin();
  for (uint32_t rank = 0; rank < size; ++rank) {
    while (child[rank] == size) take(rank, *next++);
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

bool DenseGenetic::Known(double cost) const {
  return std::any_of(population_.begin(), population_.end(),
                     [&](const DenseSolution& solution) { return solution.cost == cost; });
}

const DenseSolution& DenseGenetic::Choose() {
  const auto size = static_cast<uint32_t>(population_.size());
  const DenseSolution &a = population_[random_.Below(size)], &b = population_[random_.Below(size)];
  return Cheaper(b, a) ? b : a;
}

void DenseGenetic::Breed(const SearchControl& control) {
  std::vector<DenseSolution> children;
  for (size_t child = 0; child < population_.size() / 2 && !control.stopped(); ++child) {
    const DenseSolution &mother = Choose(), &father = Choose();
    DenseOrder order = UniformCrossover(mother.order, father.order, random_);
    Mutate(order, mutation_, random_);
    double cost = qap_.Cost(order);
    if (Known(cost)) {
      Mutate(order, kTwinMutation, random_);
      cost = qap_.Cost(order);
    }
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

absl::StatusOr<DenseSolution> Evolve(std::vector<DenseGenetic>& populations,
                                     const DenseEvolution& evolution, const DenseQap& qap,
                                     const SearchControl& control, DenseBest& reported) {
  const auto count = static_cast<uint32_t>(populations.size());
  SearchTeam& team = control.team();
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
    ASSIGN_OR_RETURN(const bool stopped, team.Any(control.stopped()));
    if (stopped) break;
    RunLogicalWorkers(evolution.threads, count, [&](uint32_t i) { populations[i].Breed(control); });
    collect();
    ASSIGN_OR_RETURN(const std::vector<DenseSolution> immigrants,
                     evolution.scheme == DenseScheme::kRing
                         ? FromTheRing(bests, team)
                         : FromTheMaster(bests, evolution, qap, master, team));
    for (uint32_t i = 0; i < count; ++i) populations[i].Receive(immigrants[i]);
  }
  collect();
  DenseSolution best = *std::min_element(bests.begin(), bests.end(), Cheaper);
  RETURN_IF_ERROR(team.ShareBest(best));
  return best;
}

}  // namespace coppice
