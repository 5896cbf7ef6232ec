#include "daemon/placement/placement_starts.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

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
  std::stable_sort(parts.begin(), parts.end(), [](const PodPart& a, const PodPart& b) {
    return std::tuple(b.required, b.room) < std::tuple(a.required, a.room);
  });
  Region region;
  uint64_t room = 0;
  for (const PodPart& part : parts) {
    if (room >= n && part.required == 0 && more-- == 0) break;
    Append(part, region);
    room += part.room;
  }
  std::sort(region.begin(), region.end());
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
      if (2 * room >= uint64_t{3} * c_.host_count && ball.region.size() >= kLeastLeaves) break;
      ball.region.push_back(i);
      room += question_.open.leaves[i].most;
    }
    Count(seed, ball);
    for (const uint32_t i : required_) ball.region.push_back(i);
    std::sort(ball.region.begin(), ball.region.end());
    ball.region.erase(std::unique(ball.region.begin(), ball.region.end()), ball.region.end());
    return ball;
  }

 private:
  static constexpr size_t kLeastLeaves = 16;

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
      if (2 * room >= uint64_t{3} * c_.host_count && order_.size() >= kLeastLeaves) break;
      const auto key = [&](uint32_t i) {
        return std::tuple(~pod_room_[Pod(i)], Pod(i), ~question_.open.leaves[i].most, i);
      };
      std::sort(ring.begin(), ring.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
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
      rest.erase(std::remove(rest.begin(), rest.end(), i), rest.end());
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
    std::sort(ball.counts.begin(), ball.counts.end());
    std::sort(pods.begin(), pods.end());
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
  std::sort(large.begin(), large.end());
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
  std::stable_sort(balls.begin(), balls.end(),
                   [](const Ball& a, const Ball& b) { return a.promise < b.promise; });
  if (balls.size() > kept) balls.resize(kept);
  return balls;
}

}  // namespace coppice
