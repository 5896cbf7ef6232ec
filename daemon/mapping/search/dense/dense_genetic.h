// A genetic population over permutations, as each of GraphHunter's processes keeps one (Baranov
// 2022, steps 1 to 7 of the ring): what the parallel genetic and the combined algorithm are made
// of.
//
//     parents by tournaments of two -> crossover -> mutation by swaps, more of them for a child
//     that is like another -> children take the places of the worst half
//
//     crossover (Tate, Smith 1995)    a   0 1 2 3 4 5 6      where both agree, so does the child;
//                                     b   3 1 0 5 4 2 6      elsewhere it takes after one of them
//                                     ->  0 1 . 5 4 2 6      while the slot is free; what is left
//                                     ->  0 1 3 5 4 2 6      goes at random
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_GENETIC_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_GENETIC_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/dense/dense_state.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// A rank sits where it does in one of the parents, wherever possible.
DenseOrder UniformCrossover(const DenseOrder& a, const DenseOrder& b, Xoshiro& random);

// With probability `mutation`, a swap of two random ranks, and so on after each. O(1) expected.
void Mutate(DenseOrder& order, double mutation, Xoshiro& random);

// Not thread-safe. The best is never lost.
class DenseGenetic final {
 public:
  DenseGenetic(const DenseQap& qap, double mutation, uint64_t seed)
      : qap_(qap), mutation_(mutation), random_(seed) {}

  void Add(DenseOrder order);
  void AddRandom() { Add(RandomDenseOrder(qap_.size(), random_)); }
  // One generation. O(n^2) for each child, of which there are half as many as individuals.
  void Breed(const SearchControl& control);
  // Takes the place of the worst if it is better.
  void Receive(const DenseSolution& immigrant);

  // Of at least one.
  const DenseSolution& best() const;
  size_t count() const { return population_.size(); }

 private:
  bool Known(double cost) const;
  const DenseSolution& Choose();

  const DenseQap& qap_;
  const double mutation_;
  Xoshiro random_;
  std::vector<DenseSolution> population_;
};

// How populations speak to each other.
enum class DenseScheme : uint8_t {
  kRing,         // after each generation the best goes to the next population
  kMasterSlave,  // the master crosses the bests of all, and hands the children out
};

struct DenseEvolution {
  DenseScheme scheme = DenseScheme::kRing;
  uint64_t generations = 1;
  uint32_t threads = 1;
  double mutation = 0;
  uint64_t seed = 1;
};

// Evolves all populations, in step with those of the other processes of control.team(), each of
// which has as many. The best of all, the same everywhere. `populations` is not empty. Errors are
// the team's.
absl::StatusOr<DenseSolution> Evolve(std::vector<DenseGenetic>& populations,
                                     const DenseEvolution& evolution, const DenseQap& qap,
                                     const SearchControl& control, DenseBest& reported);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_GENETIC_H_
