// Total distance is what it would be with all hosts `hops` apart, less what hosts on one leaf
// switch save: (hops - w) for each such pair. So the cost is a sum over leaf switches of
//
//     c(x) = leaf switch + penalty + fragmentation(x) + tie(x) - (hops - w) pair_weight x (x - 1) /
//     2
//
// for x >= 1 hosts beyond those to include, which is concave between the least and the most that a
// leaf switch can give and falls at the most, when nothing is left. Of two leaf switches with
// numbers in between, one can give hosts to the other without rise: in some best answer all leaf
// switches but one give nothing or the most. That is a knapsack with one broken piece, over kinds
// of leaf switches alike in all that c depends on:
//
//     whole[j]   least cost of exactly j hosts from whole leaf switches of the kinds so far
//     broken[j]  the same with one leaf switch among them that gives less than the most
//     next broken[j] = min(broken[j - i most] + i c(most),                     i <= m of the kind
//                          whole[j - i most - x] + i c(most) + c(x))           i <= m - 1
#include "daemon/placement/leaf_fill.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

namespace coppice {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Leaf switches alike. `most` counts hosts beyond those required, which are given already.
struct Kind {
  std::vector<uint32_t> members;  // indices of the field
  uint32_t most = 0;
  std::vector<double> cost;  // [x] of x more hosts
};

struct Step {
  uint16_t whole = 0;   // leaf switches of the kind that give the most
  uint16_t broken = 0;  // hosts of one more that gives less
};

class Knapsack {
 public:
  Knapsack(const LeafField& field, uint32_t hosts, double hops)
      : field_(field), hops_(hops), hosts_(hosts) {}

  std::optional<LeafFill> Fill() {
    FindKinds();
    if (required_ > hosts_ || room_ < hosts_ - required_) return std::nullopt;
    const uint32_t n = hosts_ - required_;
    whole_.assign(n + 1, kNever);
    broken_.assign(n + 1, kNever);
    whole_[0] = 0;
    for (const Kind& kind : kinds_) AddKind(kind, n);
    if (std::min(whole_[n], broken_[n]) == kNever) return std::nullopt;
    return Trace(n);
  }

 private:
  double CostOf(uint32_t i, uint32_t count) const {
    if (count == 0) return 0;
    const PlacementObjective& o = field_.objective;
    const double pairs = count * (count - 1.0) / 2;
    return o.leaf_switches + field_.penalty[i] + o.fragmentation * field_.Broken(i, count) +
           field_.Tie(i, count) - (hops_ - field_.within[i]) * field_.pair_weight * pairs;
  }

  void FindKinds() {
    std::map<std::tuple<uint32_t, uint32_t, bool, uint32_t, double, float>, size_t> numbers;
    for (uint32_t i = 0; i < field_.size(); ++i) {
      const OpenLeaf& leaf = field_.leaf(i);
      required_ += leaf.required;
      base_ += CostOf(i, leaf.required);
      const auto key = std::tuple(leaf.most, leaf.required, leaf.held > 0, leaf.free,
                                  field_.penalty[i], field_.within[i]);
      const auto [at, is_new] = numbers.try_emplace(key, kinds_.size());
      if (is_new) {
        Kind kind;
        kind.most = leaf.most - leaf.required;
        for (uint32_t x = 0; x <= kind.most; ++x) {
          kind.cost.push_back(CostOf(i, leaf.required + x) - CostOf(i, leaf.required));
        }
        kinds_.push_back(std::move(kind));
      }
      kinds_[at->second].members.push_back(i);
      room_ += kinds_[at->second].most;
    }
  }

  void AddKind(const Kind& kind, uint32_t n) {
    std::vector<Step> whole_steps(n + 1), broken_steps(n + 1);
    std::vector<bool> from_whole(n + 1, false);
    if (kind.most > 0) {
      const auto members = static_cast<uint32_t>(kind.members.size());
      std::vector<Step> fewer_steps(n + 1);
      std::vector<double> fewer = whole_;  // with one leaf switch of the kind left over
      AddWhole(kind, members - 1, fewer, fewer_steps);
      AddWhole(kind, members, broken_, broken_steps);
      AddWhole(kind, members, whole_, whole_steps);
      for (uint32_t j = 0; j <= n; ++j) {
        if (fewer[j] == kNever) continue;
        for (uint32_t x = 1; x < kind.most && j + x <= n; ++x) {
          const double cost = fewer[j] + kind.cost[x];
          if (cost >= broken_[j + x]) continue;
          broken_[j + x] = cost;
          broken_steps[j + x] = {fewer_steps[j].whole, static_cast<uint16_t>(x)};
          from_whole[j + x] = true;
        }
      }
    }
    whole_steps_.push_back(std::move(whole_steps));
    broken_steps_.push_back(std::move(broken_steps));
    from_whole_.push_back(std::move(from_whole));
  }

  // best[j] = min over i <= most_members of best[j - i most] + i c: for each remainder of j by
  // `most`, a sliding minimum of best[j] - (j / most) c over a window of most_members + 1.
  void AddWhole(const Kind& kind, uint32_t most_members, std::vector<double>& best,
                std::vector<Step>& steps) const {
    if (most_members == 0) return;
    const double each = kind.cost[kind.most];
    std::vector<std::pair<double, uint32_t>> window;  // (value, t), rising; from `head`
    for (uint32_t first = 0; first < kind.most && first < best.size(); ++first) {
      window.clear();
      size_t head = 0;
      for (uint32_t t = 0, j = first; j < best.size(); ++t, j += kind.most) {
        const double value = best[j] - t * each;
        if (best[j] != kNever) {
          while (window.size() > head && window.back().first >= value) window.pop_back();
          window.emplace_back(value, t);
        }
        while (head < window.size() && window[head].second + most_members < t) ++head;
        if (head == window.size()) continue;
        best[j] = window[head].first + t * each;
        steps[j] = {static_cast<uint16_t>(t - window[head].second), 0};
      }
    }
  }

  LeafFill Trace(uint32_t n) const {
    bool broken = broken_[n] < whole_[n];
    LeafFill fill;
    const double pairs = hosts_ * (hosts_ - 1.0) / 2;
    fill.cost = base_ + std::min(whole_[n], broken_[n]) + pairs * hops_ * field_.pair_weight;
    std::vector<uint32_t> given(field_.size(), 0);
    uint32_t j = n;
    for (size_t k = kinds_.size(); k-- > 0;) {
      const Kind& kind = kinds_[k];
      const Step step = broken ? broken_steps_[k][j] : whole_steps_[k][j];
      for (uint32_t i = 0; i < step.whole; ++i) given[kind.members[i]] = kind.most;
      if (step.broken > 0) given[kind.members[step.whole]] = step.broken;
      broken = broken && !from_whole_[k][j];
      j -= step.whole * kind.most + step.broken;
    }
    for (uint32_t i = 0; i < field_.size(); ++i) {
      const uint32_t count = given[i] + field_.leaf(i).required;
      if (count > 0) fill.counts.emplace_back(field_.positions[i], count);
    }
    std::sort(fill.counts.begin(), fill.counts.end());
    return fill;
  }

  const LeafField& field_;
  const double hops_;
  const uint32_t hosts_;
  uint32_t required_ = 0;
  uint64_t room_ = 0;
  double base_ = 0;  // of what is required
  std::vector<Kind> kinds_;
  std::vector<double> whole_, broken_;                         // [j]
  std::vector<std::vector<Step>> whole_steps_, broken_steps_;  // [kind][j]
  std::vector<std::vector<bool>> from_whole_;                  // [kind][j] the broken one is here
};

}  // namespace

std::optional<LeafFill> FillLeaves(const LeafField& field, uint32_t hosts, double hops) {
  if (hosts > kMostFillHosts) return std::nullopt;
  return Knapsack(field, hosts, hops).Fill();
}

}  // namespace coppice
