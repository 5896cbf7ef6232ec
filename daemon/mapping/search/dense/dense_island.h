// A population of annealed solutions of a dense problem, and how it makes better ones: what the
// memetic search (algorithm/memetic.cc, which explains it) keeps several of.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_ISLAND_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_ISLAND_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/mapping/search/dense/dense_anneal.h"
#include "daemon/mapping/search/dense/dense_state.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

struct DenseIslandOptions {
  uint32_t population = 20;
  uint32_t sweeps = 300;  // of each cooling
};

// Not thread-safe. What it does depends on its options and seed alone, unless stopped.
class DenseIsland final {
 public:
  DenseIsland(const DenseQap& qap, const DenseIslandOptions& options, uint64_t seed,
              const SearchControl& control, DenseBest& best);

  // Measures the temperatures first, from an order of its own: no two islands have quite the same.
  void Measure();
  // Fills the population from random orders. After Measure, as all below.
  void Populate();
  // One more individual, which keeps of `order` what the middle temperature leaves.
  void Settle(const DenseOrder& order);
  // Makes `count` children.
  void Breed(uint32_t count);
  // Takes the place of the worst, if better and like no other.
  void Receive(const DenseSolution& immigrant);
  // Nothing better has come for three times the population.
  bool stagnant() const { return idle_ >= 3 * options_.population; }
  void Awake() { idle_ = 0; }

  const DenseSolution& best() const;

 private:
  bool known(double cost) const;
  void Adopt(bool cooled);
  void Cross(const DenseSolution& mother, const DenseSolution& father);

  const DenseIslandOptions options_;
  const SearchControl& control_;
  DenseBest& best_;
  Xoshiro random_;
  DenseState state_;
  DenseTemperatures temperatures_;
  DenseSolution measured_;  // what the measuring left
  DenseAnnealer annealer_;
  std::vector<uint32_t> all_;
  std::vector<DenseSolution> population_;
  uint32_t idle_ = 0;  // children since one was kept
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_ISLAND_H_
