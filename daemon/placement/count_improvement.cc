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

}  // namespace coppice
