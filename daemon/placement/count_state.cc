#include "daemon/placement/count_state.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "daemon/placement/placement_request.h"

namespace coppice {
namespace {

// Each leaf switch in use in turn takes its best move of q hosts to another one, q = all that it
// may give, all that the other has room for, or one. Moving fewer than all is worth less the more
// evenly they end up (packing is convex), so that the extremes are what there is to try; one host
// mends what the other two leave on fabrics where distance is all that counts.
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

LeafField::LeafField(const PlacementIndex& index, const OpenHosts& open_hosts,
                     const PlacementRequest& request, absl::Span<const double> leaf_penalty,
                     std::vector<uint32_t> open_positions, Distances distances)
    : open(open_hosts),
      constraints(request.constraints),
      objective(request.objective),
      positions(std::move(open_positions)) {
  absl::flat_hash_map<uint32_t, uint32_t> classes, pods;
  std::vector<uint32_t> members;  // [class] a leaf switch of it
  for (const uint32_t position : positions) {
    const uint32_t l = open.leaves[position].leaf;
    const auto [at, is_new] = classes.try_emplace(index.class_of(l), class_count);
    if (is_new) {
      members.push_back(l);
      ++class_count;
    }
    class_of.push_back(at->second);
    pod_of.push_back(pods.try_emplace(index.pod_of(l), pods.size()).first->second);
    pod_free.resize(pods.size(), 0);
    pod_free[pod_of.back()] += open.leaves[position].free;
    within.push_back(static_cast<float>(index.hops_within(l)));
    penalty.push_back(leaf_penalty.empty() ? 0 : leaf_penalty[position]);
  }
  pod_count = static_cast<uint32_t>(pods.size());
  const double n = constraints.host_count;
  pair_weight = n > 1 ? objective.distance / (n * (n - 1) / 2) : 0;
  if (distances == Distances::kNone) return;
  tie_weight = kMaxTie / (2 * n * std::max(1U, index.largest_leaf()));
  matrix.resize(size_t{class_count} * class_count);
  for (uint32_t a = 0; a < class_count; ++a) {
    for (uint32_t b = 0; b < class_count; ++b) {
      // Two leaf switches of one class have a neighbour in common.
      matrix[size_t{a} * class_count + b] =
          a == b ? 4.0F : static_cast<float>(index.Hops(members[a], members[b]));
    }
  }
}

CountState::CountState(const LeafField& field)
    : field_(field),
      count_(field.size(), 0),
      used_at_(field.size(), 0),
      pod_leaves_(field.pod_count, 0),
      pod_hosts_(field.pod_count, 0),
      to_class_(field.class_count, 0) {}

void CountState::Assign(const LeafCounts& counts) {
  while (!used_.empty()) Change(used_.back(), -static_cast<int32_t>(count_[used_.back()]));
  for (const auto& [position, count] : counts) {
    const auto at = absl::c_lower_bound(field_.positions, position);
    Change(static_cast<uint32_t>(at - field_.positions.begin()), static_cast<int32_t>(count));
  }
}

LeafCounts CountState::Counts() const {
  LeafCounts counts;
  for (const uint32_t i : used_) counts.emplace_back(field_.positions[i], count_[i]);
  absl::c_sort(counts);
  return counts;
}

double CountState::cost() const {
  const PlacementObjective& o = field_.objective;
  return sums_.Cost(o) + o.pods * pods_ + field_.pair_weight * distance_;
}

double CountState::tie() const {
  double leaves = 0, pods = 0;
  uint64_t most = 1;
  for (const uint32_t i : used_) leaves += field_.Tie(i, count_[i]);
  for (uint32_t p = 0; p < pod_hosts_.size(); ++p) {
    pods += double{1} * pod_hosts_[p] * (2.0 * field_.pod_free[p] - pod_hosts_[p]);
    most = std::max<uint64_t>(most, field_.pod_free[p]);
  }
  const double hosts = field_.constraints.host_count;
  return leaves + LeafField::kMaxTie * pods / (2 * hosts * static_cast<double>(most));
}

void CountState::Change(uint32_t i, int32_t q) {
  if (q == 0) return;
  const uint32_t before = count_[i], after = before + static_cast<uint32_t>(q);
  const double w = field_.within[i];
  if (q > 0) {
    distance_ += q * Reach(i) + q * (q - 1.0) / 2 * w;
  } else {
    const double p = -q;
    distance_ -= p * (Reach(i) - w) - p * (p - 1.0) / 2 * w;
  }
  sums_ += field_.SumsOf(i, after);
  sums_ -= field_.SumsOf(i, before);
  count_[i] = after;
  const float* const row = &field_.matrix[size_t{field_.class_of[i]} * field_.class_count];
  for (uint32_t c = 0; c < field_.class_count; ++c) to_class_[c] += q * double{row[c]};
  pod_hosts_[field_.pod_of[i]] += static_cast<uint32_t>(q);
  uint32_t& pod = pod_leaves_[field_.pod_of[i]];
  if (before == 0) {
    pods_ += pod++ == 0 ? 1 : 0;
    used_at_[i] = static_cast<uint32_t>(used_.size());
    used_.push_back(i);
  } else if (after == 0) {
    if (sums_.leaves == 0) sums_.penalty = 0;  // what rounding has left
    pods_ -= --pod == 0 ? 1 : 0;
    used_[used_at_[i]] = used_.back();
    used_at_[used_.back()] = used_at_[i];
    used_.pop_back();
  }
}

void CountState::Move(uint32_t a, uint32_t b, uint32_t q) {
  Change(a, -static_cast<int32_t>(q));
  Change(b, static_cast<int32_t>(q));
}

double CountState::MoveDelta(uint32_t a, uint32_t b, uint32_t q) const {
  const double p = q, pairs = p * (p - 1) / 2;
  double distance = -(p * (Reach(a) - field_.within[a]) - pairs * field_.within[a]);
  distance += p * (Reach(b) - p * field_.hops(a, b)) + pairs * field_.within[b];
  double delta = field_.pair_weight * distance;
  delta += field_.Tie(a, count_[a] - q) - field_.Tie(a, count_[a]);
  delta += field_.Tie(b, count_[b] + q) - field_.Tie(b, count_[b]);
  LeafSums sums = field_.SumsOf(a, count_[a] - q);
  sums -= field_.SumsOf(a, count_[a]);
  sums += field_.SumsOf(b, count_[b] + q);
  sums -= field_.SumsOf(b, count_[b]);
  delta += sums.Cost(field_.objective);
  const bool empties = count_[a] == q, opens = count_[b] == 0;
  const uint32_t pod_a = field_.pod_of[a], pod_b = field_.pod_of[b];
  if (pod_a != pod_b) {
    if (empties && pod_leaves_[pod_a] == 1) delta -= field_.objective.pods;
    if (opens && pod_leaves_[pod_b] == 0) delta += field_.objective.pods;
  }
  return delta;
}

// A count of hosts that the leaf switch may give; 0 always is one.
bool CountState::IsCount(uint32_t i, uint32_t count) const {
  const OpenLeaf& leaf = field_.leaf(i);
  if (count < leaf.required || count > leaf.most) return false;
  const uint32_t each = field_.constraints.hosts_per_leaf;
  return each == 0 || count == 0 || count == each || count == LastLeafHosts(field_.constraints);
}

bool CountState::MayMove(uint32_t a, uint32_t b, uint32_t q) const {
  const PlacementConstraints& c = field_.constraints;
  const uint32_t after_a = count_[a] - q, after_b = count_[b] + q;
  if (!IsCount(a, after_a) || !IsCount(b, after_b)) return false;
  const bool empties = after_a == 0, opens = count_[b] == 0;
  if (c.hosts_per_leaf > 0 && empties != opens) return false;
  const uint32_t leaves = this->leaves() + (opens ? 1 : 0) - (empties ? 1 : 0);
  if (leaves < c.min_leaf_switches) return false;
  if (c.max_leaf_switches > 0 && leaves > c.max_leaf_switches) return false;
  if (!c.same_pod && c.min_pods < 2) return true;
  const uint32_t pod_a = field_.pod_of[a], pod_b = field_.pod_of[b];
  uint32_t pods = pods_;
  if (pod_a != pod_b) {
    if (empties && pod_leaves_[pod_a] == 1) --pods;
    if (opens && pod_leaves_[pod_b] == 0) ++pods;
  }
  return pods >= c.min_pods && (!c.same_pod || pods == 1);
}

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
