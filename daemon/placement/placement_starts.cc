#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "daemon/placement/count_state.h"

namespace coppice {
namespace {

// A pod's part of a scope.
struct PodPart {
  uint32_t begin = 0, end = 0;
  uint64_t room = 0;
  uint32_t required = 0;
  std::vector<uint32_t> leaves_with;  // [most] leaf switches with so much room
};

std::vector<PodPart> PartsOf(const PlacementQuestion& question, const OpenScope& scope) {
  std::vector<PodPart> parts;
  uint32_t pod = PlacementIndex::kNone;
  for (uint32_t i = scope.begin; i < scope.end; ++i) {
    const OpenLeaf& leaf = question.open.leaves[i];
    if (question.index.pod_of(leaf.leaf) != pod) {
      parts.push_back({.begin = i, .end = i, .leaves_with = {}});
      parts.back().leaves_with.resize(question.index.largest_leaf() + 1, 0);
      pod = question.index.pod_of(leaf.leaf);
    }
    parts.back().end = i + 1;
    parts.back().room += leaf.most;
    parts.back().required += leaf.required;
    ++parts.back().leaves_with[leaf.most];
  }
  return parts;
}

// The fewest leaf switches that have room for `hosts`; those that there are and one if they have
// not.
uint32_t FewestLeaves(const std::vector<uint32_t>& leaves_with, uint64_t hosts) {
  uint64_t fewest = 0;
  for (size_t most = leaves_with.size(); most-- > 1;) {
    const uint64_t needed = (hosts + most - 1) / most;
    if (needed <= leaves_with[most]) return static_cast<uint32_t>(fewest + needed);
    fewest += leaves_with[most];
    hosts -= leaves_with[most] * most;
  }
  return static_cast<uint32_t>(fewest + (hosts > 0 ? 1 : 0));
}

void Append(const PodPart& part, Region& region) {
  for (uint32_t i = part.begin; i < part.end; ++i) region.push_back(i);
}

// The parts that everything to include is in, then those with most room on their fullest leaf
// switches, until there is room for all and `more` parts beyond that.
Region Union(const PlacementQuestion& question, std::vector<PodPart> parts, uint32_t more) {
  const uint64_t n = question.request.constraints.host_count;
  absl::c_stable_sort(parts, [](const PodPart& a, const PodPart& b) {
    return std::tuple(b.required, b.room) < std::tuple(a.required, a.room);
  });
  Region region;
  uint64_t room = 0;
  for (const PodPart& part : parts) {
    if (room >= n && part.required == 0 && more-- == 0) break;
    Append(part, region);
    room += part.room;
  }
  absl::c_sort(region);
  return region;
}

// Orders the leaf switches of a scope around one of them.
class BallGrower {
 public:
  BallGrower(const PlacementQuestion& question, const OpenScope& scope)
      : question_(question),
        c_(question.request.constraints),
        scope_(scope),
        pod_room_(question.index.pod_count(), 0) {
    for (uint32_t i = scope.begin; i < scope.end; ++i) {
      pod_room_[Pod(i)] += question.open.leaves[i].most;
      if (question.open.leaves[i].required > 0) required_.push_back(i);
    }
  }

  Ball Grow(uint32_t seed) {
    Sort(seed);
    Ball ball;
    uint64_t room = 0;
    for (const uint32_t i : order_) {
      if (2 * room >= uint64_t{3} * c_.host_count && ball.region.size() >= kMinLeaves) break;
      ball.region.push_back(i);
      room += question_.open.leaves[i].most;
    }
    Count(seed, ball);
    // Even shares pass over leaf switches, and so may reach farther than the room counted here.
    for (const auto& [i, count] : ball.counts) ball.region.push_back(i);
    for (const uint32_t i : required_) ball.region.push_back(i);
    absl::c_sort(ball.region);
    ball.region.erase(std::unique(ball.region.begin(), ball.region.end()), ball.region.end());
    return ball;
  }

 private:
  static constexpr size_t kMinLeaves = 16;

  uint32_t Pod(uint32_t i) const { return question_.index.pod_of(question_.open.leaves[i].leaf); }

  // By distance, then pods by room, then leaf switches by room. Distances are few: one bucket each.
  void Sort(uint32_t seed) {
    for (auto& ring : rings_) ring.clear();
    const uint32_t center = question_.open.leaves[seed].leaf;
    for (uint32_t i = scope_.begin; i < scope_.end; ++i) {
      const uint32_t hops = question_.index.Hops(center, question_.open.leaves[i].leaf);
      if (hops >= rings_.size()) rings_.resize(hops + 1);
      rings_[hops].push_back(i);
    }
    order_.clear();
    uint64_t room = 0;
    for (auto& ring : rings_) {
      if (2 * room >= uint64_t{3} * c_.host_count && order_.size() >= kMinLeaves) break;
      const auto key = [&](uint32_t i) {
        return std::tuple(~pod_room_[Pod(i)], Pod(i), ~question_.open.leaves[i].most, i);
      };
      absl::c_sort(ring, [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
      for (const uint32_t i : ring) room += question_.open.leaves[i].most;
      order_.insert(order_.end(), ring.begin(), ring.end());
    }
  }

  // In order, as many of each leaf switch as there are, and those to include in any case.
  LeafCounts FullShares() const {
    LeafCounts shares;
    uint32_t left = c_.host_count - question_.open.required;
    std::vector<uint32_t> rest = required_;
    for (const uint32_t i : order_) {
      if (left == 0) break;
      const OpenLeaf& leaf = question_.open.leaves[i];
      const uint32_t more = std::min(left, leaf.most - leaf.required);
      if (leaf.required + more == 0) continue;
      shares.emplace_back(i, leaf.required + more);
      left -= more;
      std::erase(rest, i);
    }
    for (const uint32_t i : rest) shares.emplace_back(i, question_.open.leaves[i].required);
    return shares;
  }

  // hosts_per_leaf of each leaf switch, those to include first, then in order; the last share to
  // the first one that need not have more once that is all that is left. Empty if it does not work
  // out.
  LeafCounts EvenShares() const {
    LeafCounts shares;
    const uint32_t last = LastLeafHosts(c_);
    uint32_t left = c_.host_count;
    bool gave_last = last == c_.hosts_per_leaf;
    std::vector<uint32_t> order = required_;
    for (const uint32_t i : order_) {
      if (question_.open.leaves[i].required == 0) order.push_back(i);
    }
    for (const uint32_t i : order) {
      const OpenLeaf& leaf = question_.open.leaves[i];
      uint32_t share = leaf.most == c_.hosts_per_leaf && left >= leaf.most ? leaf.most : 0;
      const bool may_be_last = leaf.most >= last && leaf.required <= last && left >= last;
      if (share == 0 && !gave_last && may_be_last && (left == last || leaf.required > 0)) {
        share = last;
        gave_last = true;
      }
      if (share < leaf.required) return {};
      if (share == 0) continue;
      shares.emplace_back(i, share);
      left -= share;
      if (left == 0) return shares;
    }
    return {};
  }

  void Count(uint32_t seed, Ball& ball) {
    const PlacementObjective& o = question_.request.objective;
    const uint32_t center = question_.open.leaves[seed].leaf;
    double hops = 0;
    std::vector<uint32_t> pods;
    for (const auto& [i, count] : c_.hosts_per_leaf > 0 ? EvenShares() : FullShares()) {
      ball.counts.emplace_back(i, count);
      hops += count * double{1} * question_.index.Hops(center, question_.open.leaves[i].leaf);
      pods.push_back(Pod(i));
    }
    absl::c_sort(ball.counts);
    absl::c_sort(pods);
    const auto distinct = std::unique(pods.begin(), pods.end()) - pods.begin();
    ball.promise = o.leaf_switches * static_cast<double>(ball.counts.size()) +
                   o.pods * static_cast<double>(distinct) + o.distance * hops / c_.host_count;
  }

  const PlacementQuestion& question_;
  const PlacementConstraints& c_;
  const OpenScope& scope_;
  std::vector<uint64_t> pod_room_;  // [pod]
  std::vector<uint32_t> required_;  // positions with hosts to include
  std::vector<std::vector<uint32_t>> rings_;
  std::vector<uint32_t> order_;
};

// Total distance is what it would be with all hosts `hops` apart, less what hosts on one leaf
// switch save: (hops - w) for each such pair. So the cost is a sum over leaf switches of
//
//     c(x) = LeafSums(x) + tie(x) - (hops - w) pair_weight x (x - 1) / 2
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
  bool is_first_broken = false;
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
    const double pairs = count * (count - 1.0) / 2;
    return field_.SumsOf(i, count).Cost(field_.objective) + field_.Tie(i, count) -
           (hops_ - field_.within[i]) * field_.pair_weight * pairs;
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
          broken_steps[j + x] = {fewer_steps[j].whole, static_cast<uint16_t>(x), true};
        }
      }
    }
    whole_steps_.push_back(std::move(whole_steps));
    broken_steps_.push_back(std::move(broken_steps));
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
        steps[j] = {static_cast<uint16_t>(t - window[head].second)};
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
      broken = broken && !step.is_first_broken;
      j -= step.whole * kind.most + step.broken;
    }
    for (uint32_t i = 0; i < field_.size(); ++i) {
      const uint32_t count = given[i] + field_.leaf(i).required;
      if (count > 0) fill.counts.emplace_back(field_.positions[i], count);
    }
    absl::c_sort(fill.counts);
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
};

}  // namespace

std::vector<Region> PodRegions(const PlacementQuestion& question, const OpenScope& scope,
                               uint32_t most) {
  const uint32_t n = question.request.constraints.host_count;
  const std::vector<PodPart> parts = PartsOf(question, scope);
  std::vector<std::tuple<uint32_t, uint64_t, size_t>> large;  // (leaf switches, room, part)
  for (size_t p = 0; p < parts.size(); ++p) {
    if (parts[p].room < n || parts[p].required < question.open.required) continue;
    large.emplace_back(FewestLeaves(parts[p].leaves_with, n), parts[p].room, p);
  }
  absl::c_sort(large);
  if (large.size() > most) large.resize(most);
  std::vector<Region> regions;
  for (const auto& [leaves, room, p] : large) {
    regions.emplace_back();
    Append(parts[p], regions.back());
  }
  if (question.request.constraints.same_pod || parts.size() < 2) return regions;
  for (uint32_t more = 0; more < most; ++more) {
    Region region = Union(question, parts, more);
    if (!regions.empty() && region == regions.back()) break;
    regions.push_back(std::move(region));
  }
  return regions;
}

std::vector<Ball> Balls(const PlacementQuestion& question, const OpenScope& scope, uint32_t most,
                        uint32_t kept) {
  std::vector<Ball> balls;
  BallGrower grower(question, scope);
  const uint32_t size = scope.end - scope.begin, count = std::min(size, most);
  for (uint32_t s = 0; s < count; ++s) {
    const auto offset = static_cast<uint32_t>(uint64_t{s} * size / count);
    Ball ball = grower.Grow(scope.begin + offset);
    if (!ball.counts.empty()) balls.push_back(std::move(ball));
  }
  absl::c_stable_sort(balls, [](const Ball& a, const Ball& b) { return a.promise < b.promise; });
  if (balls.size() > kept) balls.resize(kept);
  return balls;
}

std::optional<LeafFill> FillLeaves(const LeafField& field, uint32_t hosts, double hops) {
  if (hosts > kMaxFillHosts) return std::nullopt;
  return Knapsack(field, hosts, hops).Fill();
}

}  // namespace coppice
