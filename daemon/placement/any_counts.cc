// Counts of hosts by leaf switch that meet every constraint, or the proof that there are none.
//
//     1  leaf switches with hosts to include
//     2  the largest leaf switch of each further pod, largest first, until there are enough pods
//     3  the largest of all others, until there are enough leaf switches and room for all hosts
//
// Exchange: in any answer, a leaf switch of step 2 or 3 can be replaced by the one that is taken
// here, which has at least as much room and covers as many pods. So if this finds none, there is
// none. With hosts_per_leaf, room is whole leaf switches, and one that has room for the last,
// lesser share only may be taken once.
#include <algorithm>

#include "daemon/placement/placement_constraints.h"

namespace coppice {
namespace {

class CountsBuilder {
 public:
  CountsBuilder(const PlacementIndex& index, const OpenHosts& open, const OpenScope& scope,
                const PlacementConstraints& constraints)
      : index_(index),
        open_(open),
        scope_(scope),
        c_(constraints),
        covered_(index.pod_count(), false),
        is_taken_(scope.end - scope.begin, false) {
    if (c_.hosts_per_leaf > 0) last_ = LastLeafHosts(c_);
    for (uint32_t i = scope.begin; i < scope.end; ++i) {
      if (open_.leaves[i].most >= last_) order_.push_back(i);
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [&](uint32_t a, uint32_t b) { return Room(a) > Room(b); });
    most_leaves_ = c_.max_leaf_switches > 0 ? c_.max_leaf_switches : UINT32_MAX;
    if (c_.hosts_per_leaf > 0) {
      const uint32_t used = (c_.host_count + c_.hosts_per_leaf - 1) / c_.hosts_per_leaf;
      least_leaves_ = used;
      most_leaves_ = std::min(most_leaves_, used);
    }
    least_leaves_ = std::max(least_leaves_, c_.min_leaf_switches);
  }

  std::optional<LeafCounts> Build() {
    uint32_t required = 0;
    for (const uint32_t i : order_) {
      if (open_.leaves[i].required == 0) continue;
      required += open_.leaves[i].required;
      if (!Take(i)) return std::nullopt;
    }
    if (required < open_.required) return std::nullopt;  // on a leaf switch without enough room
    for (const uint32_t i : order_) {
      if (pods_ >= c_.min_pods) break;
      if (!covered_[Pod(i)]) Take(i);
    }
    for (const uint32_t i : order_) {
      if (room_ >= c_.host_count && taken_.size() >= least_leaves_) break;
      if (!is_taken_[i - scope_.begin]) Take(i);
    }
    if (room_ < c_.host_count || taken_.size() < least_leaves_ || pods_ < c_.min_pods ||
        taken_.size() > c_.host_count) {
      return std::nullopt;
    }
    return Share();
  }

 private:
  uint32_t Pod(uint32_t i) const { return index_.pod_of(open_.leaves[i].leaf); }
  // Hosts that leaf switch i can have beside all others of the answer.
  uint32_t Room(uint32_t i) const {
    const uint32_t most = open_.leaves[i].most;
    return c_.hosts_per_leaf == 0 || most == c_.hosts_per_leaf ? most : last_;
  }
  bool IsLesser(uint32_t i) const {
    return c_.hosts_per_leaf > 0 && open_.leaves[i].most < c_.hosts_per_leaf;
  }
  bool Take(uint32_t i) {
    if (taken_.size() >= most_leaves_) return false;
    if (IsLesser(i) && (has_lesser_ || open_.leaves[i].required > last_)) return false;
    has_lesser_ |= IsLesser(i);
    taken_.push_back(i);
    is_taken_[i - scope_.begin] = true;
    room_ += Room(i);
    pods_ += covered_[Pod(i)] ? 0 : 1;
    covered_[Pod(i)] = true;
    return true;
  }

  std::optional<LeafCounts> Share() {
    LeafCounts counts;
    if (c_.hosts_per_leaf > 0) {
      for (const uint32_t i : taken_) counts.emplace_back(i, c_.hosts_per_leaf);
      if (!GiveLastShare(counts)) return std::nullopt;
    } else {
      uint32_t left = c_.host_count;
      for (const uint32_t i : taken_) {
        counts.emplace_back(i, std::max(1U, open_.leaves[i].required));
        if (counts.back().second > left) return std::nullopt;
        left -= counts.back().second;
      }
      for (auto& [i, count] : counts) {
        const uint32_t more = std::min(left, open_.leaves[i].most - count);
        count += more;
        left -= more;
      }
    }
    std::sort(counts.begin(), counts.end());
    return counts;
  }

  // The lesser leaf switch, or one that need not have more, gets the last share.
  bool GiveLastShare(LeafCounts& counts) const {
    if (last_ == c_.hosts_per_leaf) return true;
    for (const bool lesser : {true, false}) {
      for (auto it = counts.rbegin(); it != counts.rend(); ++it) {
        if (IsLesser(it->first) == lesser && open_.leaves[it->first].required <= last_) {
          it->second = last_;
          return !has_lesser_ || lesser;
        }
      }
    }
    return false;
  }

  const PlacementIndex& index_;
  const OpenHosts& open_;
  const OpenScope& scope_;
  const PlacementConstraints& c_;
  std::vector<bool> covered_;    // [pod]
  std::vector<bool> is_taken_;   // [position in the scope]
  std::vector<uint32_t> order_;  // positions, the most room first
  std::vector<uint32_t> taken_;
  uint32_t last_ = 1;  // hosts on the last leaf switch
  uint32_t least_leaves_ = 0, most_leaves_ = 0, pods_ = 0;
  uint64_t room_ = 0;
  bool has_lesser_ = false;
};

}  // namespace

std::optional<LeafCounts> AnyCounts(const PlacementIndex& index, const OpenHosts& open,
                                    const OpenScope& scope,
                                    const PlacementConstraints& constraints) {
  return CountsBuilder(index, open, scope, constraints).Build();
}

}  // namespace coppice
