// One robust taboo search over a dense problem: the engine of algorithm/local_search.cc, which
// explains it.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_TABU_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_TABU_H_

#include <cstdint>
#include <vector>

#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/dense/dense_state.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// Not thread-safe.
class DenseTabu final {
 public:
  // O(n^2).
  DenseTabu(const DenseQap& qap, DenseOrder order, uint64_t seed);

  // So many steps, or until stopped. The best improves in best() at once, and is reported now and
  // then. O(n^3) first, O(n^2) for a step.
  void Run(uint64_t steps, const SearchControl& control, DenseBest& best);

  const DenseSolution& best() const { return best_; }
  const DenseState& state() const { return state_; }
  // What a swap of ranks r > s costs, as kept by the updates.
  double SwapCost(uint32_t r, uint32_t s) const { return costs_[Row(r) + s]; }

 private:
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
  CostRowUpdate update_row_;
  FirstBelow first_below_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_DENSE_DENSE_TABU_H_
