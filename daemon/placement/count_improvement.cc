// Each leaf switch in use in turn takes its best move of q hosts to another one, q = all that it
// may give, all that the other has room for, or one. Moving fewer than all is worth less the more
// evenly they end up (packing is convex), so that the extremes are what there is to try; one host
// mends what the other two leave on fabrics where distance is all that counts.
#include "daemon/placement/count_improvement.h"

#include <algorithm>
#include <vector>

#include "daemon/placement/placement_cost.h"

namespace coppice {
namespace {

struct BestMove {
  uint32_t b = 0, q = 0;
  double delta = -kWorthwhileGain;
};

void TryMove(const CountState& state, uint32_t a, uint32_t b, uint32_t q, BestMove& best) {
  if (q == 0 || !state.MayMove(a, b, q)) return;
  const double delta = state.MoveDelta(a, b, q);
  if (delta < best.delta) best = {b, q, delta};
}

BestMove FindMove(const LeafField& field, const CountState& state, uint32_t a) {
  BestMove best;
  const uint32_t gives = state.count(a) - field.leaf(a).required;
  if (gives == 0) return best;
  for (uint32_t b = 0; b < field.size(); ++b) {
    if (a == b) continue;
    const uint32_t q = std::min(gives, field.leaf(b).most - state.count(b));
    TryMove(state, a, b, q, best);
    if (q > 1) TryMove(state, a, b, 1, best);
  }
  return best;
}

bool MeetsLeast(const LeafField& field, const CountState& state) {
  return state.leaves() >= field.constraints.min_leaf_switches &&
         state.pods() >= field.constraints.min_pods;
}

}  // namespace

void ImproveCounts(const LeafField& field, CountState& state, uint64_t& patience) {
  bool improved = true;
  while (improved) {
    improved = false;
    const std::vector<uint32_t> used(state.used().begin(), state.used().end());
    for (const uint32_t a : used) {
      if (state.count(a) == 0) continue;
      if (patience < field.size()) return;
      patience -= field.size();
      const BestMove move = FindMove(field, state, a);
      if (move.q == 0) continue;
      state.Move(a, move.b, move.q);
      improved = true;
    }
  }
}

bool MendCounts(const LeafField& field, CountState& state) {
  const PlacementConstraints& c = field.constraints;
  while (!MeetsLeast(field, state)) {
    if (c.hosts_per_leaf > 0) return false;
    uint32_t from = field.size(), to = field.size();
    double least = 0;
    const uint32_t pods = state.pods();
    for (const uint32_t a : state.used()) {
      if (state.count(a) <= std::max(1U, field.leaf(a).required)) continue;
      for (uint32_t b = 0; b < field.size(); ++b) {
        if (state.count(b) > 0 || field.leaf(b).most == 0) continue;
        if (pods < c.min_pods && state.HasPod(b)) continue;
        const double delta = state.MoveDelta(a, b, 1);
        if (from < field.size() && delta >= least) continue;
        from = a, to = b, least = delta;
      }
    }
    if (from == field.size()) return false;
    state.Move(from, to, 1);
  }
  return c.max_leaf_switches == 0 || state.leaves() <= c.max_leaf_switches;
}

// A. Baranov, E. Kiselev, P. Telegin, A. Sorokin, "GraphHunter", Programmnye Produkty i Sistemy 35
// (2022), the two-stage method: nodes are first chosen among the free ones by a modified algorithm
// of least cuts (V. Feshchenko, L. Matyushkov, "Iterative algorithm for cutting a graph into K
// subgraphs", 1976: exchanges between the parts while the cut gets less), then ranks are mapped.
//
//     free graph   o===o---o===o     === one leaf switch, --- beyond; cutting two hosts off at a
//                      ^ cut         leaf switch's border costs the weak links only
//
// The paper weighs links by their performance; between hosts we take 1 / hops^2, so that a host's
// neighbours on its leaf switch (2 hops) outweigh four in its pod (4 hops). With o open hosts on
// each leaf switch, x of them chosen, and A the weights between leaf switches,
//
//     cut(x) = x^T A (o - x) = sum of x_i (D_i - N_i)       D = A o,  N = A x
//     q hosts from a to b:  q (D_b - D_a) - 2 q (N_b - N_a) - q^2 (A_aa + A_bb - 2 A_ab)
//
// N and D are kept by class of leaf switch, so that pricing an exchange is a few look-ups. We cut
// one part of a given size off, where the original makes K.

namespace {

double Weight(double hops) { return 1 / (hops * hops); }

class CutState {
 public:
  CutState(const LeafField& field, const CountState& state)
      : field_(field),
        open_of_class_(field.class_count, 0),
        to_open_(field.class_count, 0),
        to_chosen_(field.class_count, 0) {
    for (uint32_t i = 0; i < field.size(); ++i)
      open_of_class_[field.class_of[i]] += field.leaf(i).open;
    for (uint32_t c = 0; c < field.class_count; ++c) {
      for (uint32_t d = 0; d < field.class_count; ++d) {
        to_open_[c] += open_of_class_[d] * ClassWeight(c, d);
      }
    }
    for (const uint32_t i : state.used()) Add(i, state.count(i));
  }

  void Add(uint32_t i, double q) {
    for (uint32_t c = 0; c < field_.class_count; ++c) {
      to_chosen_[c] += q * ClassWeight(c, field_.class_of[i]);
    }
  }

  // D_i and N_i; `count` hosts of leaf switch i are chosen.
  double ToOpen(uint32_t i) const {
    return to_open_[field_.class_of[i]] + field_.leaf(i).open * OwnExcess(i);
  }
  double ToChosen(uint32_t i, uint32_t count) const {
    return to_chosen_[field_.class_of[i]] + count * OwnExcess(i);
  }

  double MoveDelta(const CountState& state, uint32_t a, uint32_t b, uint32_t q) const {
    const double straight = ToOpen(b) - ToOpen(a);
    const double chosen = ToChosen(b, state.count(b)) - ToChosen(a, state.count(a));
    const double own =
        Weight(field_.within[a]) + Weight(field_.within[b]) - 2 * Weight(field_.hops(a, b));
    return q * straight - 2.0 * q * chosen - double{1} * q * q * own;
  }

 private:
  double ClassWeight(uint32_t c, uint32_t d) const {
    return Weight(field_.matrix[size_t{c} * field_.class_count + d]);
  }
  // What a host on the same leaf switch weighs more than one on another of its class.
  double OwnExcess(uint32_t i) const {
    return Weight(field_.within[i]) - ClassWeight(field_.class_of[i], field_.class_of[i]);
  }

  const LeafField& field_;
  std::vector<double> open_of_class_, to_open_, to_chosen_;  // [class]
};

struct BestExchange {
  uint32_t a = 0, b = 0, q = 0;
  double delta = -kWorthwhileGain;
};

}  // namespace

double CutOf(const LeafField& field, const CountState& state) {
  const CutState cut(field, state);
  double sum = 0;
  for (const uint32_t i : state.used()) {
    sum += state.count(i) * (cut.ToOpen(i) - cut.ToChosen(i, state.count(i)));
  }
  return sum;
}

void ImproveCut(const LeafField& field, CountState& state, uint64_t& patience) {
  CutState cut(field, state);
  for (;;) {
    BestExchange best;
    for (const uint32_t a : state.used()) {
      const uint32_t gives = state.count(a) - field.leaf(a).required;
      for (uint32_t b = 0; b < field.size() && gives > 0; ++b) {
        if (a == b) continue;
        if (patience == 0) return;
        --patience;
        const uint32_t all = std::min(gives, field.leaf(b).most - state.count(b));
        for (const uint32_t q : {all, 1U}) {
          if (q == 0 || q > all || !state.MayMove(a, b, q)) continue;
          const double delta = cut.MoveDelta(state, a, b, q);
          if (delta < best.delta) best = {a, b, q, delta};
        }
      }
    }
    if (best.q == 0) return;
    state.Move(best.a, best.b, best.q);
    cut.Add(best.a, -double{1} * best.q);
    cut.Add(best.b, best.q);
  }
}

}  // namespace coppice
