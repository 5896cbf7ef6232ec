// Annealing of dense problems by sweeps, the engine of the memetic search (algorithm/memetic.cc).
//
// A full sweep looks at all pairs of free ranks. Below the temperature at which a solution freezes
// nearly all swaps are hopeless, and stay so for a while: a full sweep therefore notes the pairs
// that could be accepted at all, and the next kSweepsPerScan sweeps look at these alone.
//
//     acceptance   50 %     30 %     10 %      1 %     0.1 %  0.01 %
//     temperature  |--------|--------|start----|middle--|-----|end
//     pairs noted  all                          a tenth        a hundredth
//
// Sweeps are systematic (Connolly 1990); between two scans a pair that becomes good is not seen.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_SEARCH_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_SEARCH_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// The three temperatures of a problem, by the share of swaps that are accepted although they cost:
// at `start` a tenth, at `middle` a hundredth, at `end` one in 5,000. In the units of costs.
struct DenseTemperatures {
  double start = 1, middle = 1, end = 1;
};

// Measured on one quick run with `state`, a random order of at least two ranks, which is left where
// the run ends: a first solution of sorts. 40 to 200 sweeps over all pairs, O(n) each.
DenseTemperatures MeasureTemperatures(DenseState& state, Xoshiro& random,
                                      const SearchControl& control);

// Keeps its memory from run to run. Not thread-safe.
class DenseAnnealer final {
 public:
  // Sweeps over swaps among `free` ranks, temperatures falling from `from` to `to` in equal
  // ratios. False: stopped by `control` on the way.
  bool Run(DenseState& state, absl::Span<const uint32_t> free, double from, double to,
           uint32_t sweeps, Xoshiro& random, const SearchControl& control);

 private:
  friend DenseTemperatures MeasureTemperatures(DenseState&, Xoshiro&, const SearchControl&);
  static constexpr uint32_t kSweepsPerScan = 10;

  bool Scan(DenseState& state, absl::Span<const uint32_t> free, double temperature, Xoshiro& random,
            const SearchControl& control);
  void Consider(DenseState& state, uint32_t r, uint32_t s, double delta, double temperature,
                Xoshiro& random);

  std::vector<std::pair<uint16_t, uint16_t>> hopeful_;
  uint64_t paid_ = 0;  // swaps of the last sweep that raised the cost
};

// One annealing chain as GraphHunter runs them (Baranov 2022, "Parallel algorithms"): random swaps,
// so many candidates at each temperature, two ways of cooling. What parallel annealing and the
// combined algorithm are made of.
//
//     proportional   T(k) = T(0) * (T(N) / T(0))^(k / N)
//     Cauchy         T(k) = T(0) / (1 + k * b),  b = (T(0) / T(N) - 1) / N

struct DenseSchedule {
  bool cauchy = true;          // else proportional
  double first = 1, last = 1;  // temperatures, in the units of costs
  uint64_t iterations = 1;     // from the first to the last
  uint32_t candidates = 50;    // for each iteration, which is one temperature

  double Temperature(uint64_t iteration) const;
};

// From the mean cost of random swaps of a random order down to a thousandth of it: above, nearly
// half of all swaps are taken, below, hardly any that costs. `size` >= 2.
DenseSchedule MeasuredSchedule(const DenseQap& qap, uint64_t seed);

// Iterations `from` (inclusive) to `to` of the schedule. Returns the best that was met, `state`
// itself included. Ends early when stopped.
DenseSolution RunChain(DenseState& state, const DenseSchedule& schedule, uint64_t from, uint64_t to,
                       Xoshiro& random, const SearchControl& control);

// One robust taboo search over a dense problem ("robust-tabu" of algorithms.h). Not thread-safe.
class DenseTabu final {
 public:
  // O(n^2).
  DenseTabu(const DenseQap& qap, DenseOrder order, uint64_t seed);

  // So many steps, or until stopped. The best improves in best() at once, and is reported now and
  // then. O(n^3) first, O(n^2) for a step.
  void Run(uint64_t steps, const SearchControl& control, DenseBest& best);

  const DenseSolution& best() const { return best_; }
  const DenseState& state() const { return state_; }

 private:
  friend class DenseTabuPeer;  // of tests, which see the kept costs

  struct Move {
    uint32_t r = 0, s = 0;
    double cost = 0;
    bool found = false;
  };
  static size_t Row(uint32_t r) { return static_cast<size_t>(r) * (r - 1) / 2; }
  double& CostOf(uint32_t a, uint32_t b) { return a > b ? costs_[Row(a) + b] : costs_[Row(b) + a]; }
  int64_t& FreeFrom(uint32_t rank, uint32_t slot) {
    return free_from_[static_cast<size_t>(rank) * state_.size() + slot];
  }

  bool Taboo(uint32_t r, uint32_t s);
  // A swap of a rank that it and its partner have not made for very long.
  Move Forgotten(uint32_t rank);
  Move Cheapest();
  void Make(const Move& move);
  void UpdateCosts(uint32_t r, uint32_t s);
  int64_t Term();
  // False, and counted_ with it: stopped on the way.
  bool CountCosts(const SearchControl& control);
  // Goes on from the best, after some random swaps.
  void Kick(const SearchControl& control);

  DenseState state_;
  Xoshiro random_;
  DenseSolution best_;
  int64_t step_ = 0;
  double since_kick_;               // the least cost since then
  int64_t improved_step_ = 0;       // when that was met
  bool counted_ = false;            // costs_ are those of state_
  std::vector<double> costs_;       // [r][s], s < r
  std::vector<int64_t> free_from_;  // [rank][slot] the step from which it may return
  std::vector<double> u_, v_, u_transposed_, v_transposed_;
  const DenseKernels& kernels_ = BestKernels();
};

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

// A rank sits where it does in one of the parents, wherever possible.
DenseOrder UniformCrossover(const DenseOrder& a, const DenseOrder& b, Xoshiro& random);

// With probability `mutation`, a swap of two random ranks, and so on after each. O(1) expected.
void Mutate(DenseOrder& order, double mutation, Xoshiro& random);

// Whether some solution costs just this: it is most likely the same.
bool IsKnown(absl::Span<const DenseSolution> population, double cost);
// Takes the place of the dearest if it is cheaper.
void ReplaceDearest(const DenseSolution& immigrant, std::vector<DenseSolution>& population);

// Not thread-safe. The best is never lost.
class DenseGenetic final {
 public:
  DenseGenetic(const DenseQap& qap, double mutation, uint64_t seed)
      : qap_(qap), mutation_(mutation), random_(seed) {}

  void Add(DenseOrder order);
  void AddRandom() { Add(RandomDenseOrder(qap_.size(), random_)); }
  // One generation. O(n^2) for each child, of which there are half as many as individuals.
  void Breed(const SearchControl& control);
  void Receive(const DenseSolution& immigrant) { ReplaceDearest(immigrant, population_); }

  // Of at least one.
  const DenseSolution& best() const { return *absl::c_min_element(population_); }
  size_t count() const { return population_.size(); }

 private:
  const DenseSolution& Choose();

  const DenseQap& qap_;
  const double mutation_;
  Xoshiro random_;
  std::vector<DenseSolution> population_;
};

struct DenseEvolution {
  // How populations speak to each other: a master crosses the bests of all and hands the children
  // out, or after each generation the best goes to the next population.
  bool has_master = false;
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

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_SEARCH_H_
