#include "tests/unit/tree/batch_oracle.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace coppice {
namespace {

constexpr int kFar = 1000;
using Matrix = std::vector<std::vector<int>>;

// Floyd and Warshall, over switches.
Matrix Distances(const Fabric& fabric) {
  const uint32_t n = fabric.switch_count();
  Matrix d(n, std::vector<int>(n, kFar));
  for (uint32_t s = 0; s < n; ++s) {
    for (const Channel& c : fabric.switch_channels(SwitchIndex(s))) d[s][c.to.value()] = 1;
    d[s][s] = 0;
  }
  for (uint32_t k = 0; k < n; ++k) {
    for (uint32_t i = 0; i < n; ++i) {
      for (uint32_t j = 0; j < n; ++j) d[i][j] = std::min(d[i][j], d[i][k] + d[k][j]);
    }
  }
  return d;
}

using Choice = std::pair<bool, uint32_t>;  // farther, bits of the switches that serve
// Bits of the switches that serve, and (channel, packets) for every switch that sends.
using LinkChoice = std::pair<uint32_t, std::vector<std::pair<uint32_t, uint32_t>>>;

// Packets that leave `s` if `set` serves and everybody sends along `next`; 0 if a switch of the set
// has fewer than two children.
class Sender {
 public:
  Sender(const std::vector<int>& next, const std::vector<uint32_t>& ranks,
         absl::Span<const SwitchCapacity> capacity, uint32_t set)
      : next_(next), ranks_(ranks), capacity_(capacity), set_(set) {}

  uint32_t Leaving(uint32_t s) {
    uint32_t packets = ranks_[s];
    for (uint32_t child = 0; child < next_.size(); ++child) {
      if (next_[child] == static_cast<int>(s)) packets += Leaving(child);
    }
    if ((set_ >> s & 1) == 0) return packets;
    if (packets < 2) wrong_ = true;
    const uint32_t limit = capacity_[s].degree_limit;
    return packets <= limit ? 1 : packets - limit + 1;
  }
  bool wrong() const { return wrong_; }

 private:
  const std::vector<int>& next_;
  const std::vector<uint32_t>& ranks_;
  const absl::Span<const SwitchCapacity> capacity_;
  const uint32_t set_;
  bool wrong_ = false;
};

class Oracle {
 public:
  // `every_channel`: trees over different cables to the same switch are different ones.
  Oracle(const Fabric& fabric, absl::Span<const SwitchCapacity> capacity, RootReach reach,
         bool every_channel)
      : fabric_(fabric),
        capacity_(capacity),
        reach_(reach),
        every_channel_(every_channel),
        distances_(Distances(fabric)) {}

  void Add(const BatchCommunicator& communicator) {
    choices_.emplace_back();
    link_choices_.emplace_back();
    if (communicator.members.size() == 1) {
      choices_.back().insert({false, 0});
      link_choices_.back().insert(LinkChoice());
      return;
    }
    ranks_.assign(fabric_.switch_count(), 0);
    for (const EndpointIndex e : communicator.members) {
      ++ranks_[fabric_.attached_switch(e)->value()];
    }
    int least = kFar;
    for (uint32_t s = 0; s < ranks_.size(); ++s) least = std::min(least, Farthest(s));
    if (least >= kFar) return;
    for (uint32_t root = 0; root < ranks_.size(); ++root) {
      if (Farthest(root) >= kFar) continue;
      if (reach_ == RootReach::kNearest && Farthest(root) > least) continue;
      next_.assign(ranks_.size(), -1);
      up_.assign(ranks_.size(), 0);
      Grow(root, Farthest(root) > least && reach_ != RootReach::kAny, Farthest(root));
    }
  }

  BatchOutcome Best() {
    free_.clear();
    for (const SwitchCapacity& c : capacity_) free_.push_back(c.entries_free);
    best_ = {UINT32_MAX, 0, 0};
    Assign(0, {0, 0, 0});
    return best_;
  }

  uint32_t BestMost(uint64_t most_entries) {
    free_.clear();
    for (const SwitchCapacity& c : capacity_) free_.push_back(c.entries_free);
    loads_.assign(fabric_.channel_count(), 0);
    best_most_ = UINT32_MAX;
    AssignLinks(0, most_entries, 0);
    return best_most_;
  }

 private:
  int Farthest(uint32_t s) const {
    int most = 0;
    for (uint32_t leaf = 0; leaf < ranks_.size(); ++leaf) {
      if (ranks_[leaf] > 0) most = std::max(most, distances_[leaf][s]);
    }
    return most;
  }

  bool IsInTree(uint32_t s) const {
    if (ranks_[s] > 0) return true;
    return std::count(next_.begin(), next_.end(), static_cast<int>(s)) > 0;
  }

  // Chooses where every switch at `level` hops from the root sends to, then those nearer.
  void Grow(uint32_t root, bool farther, int level) {
    if (level == 0) {
      TrySets(root, farther);
      return;
    }
    for (uint32_t s = 0; s < next_.size(); ++s) {
      if (distances_[s][root] != level || next_[s] >= 0 || !IsInTree(s)) continue;
      std::set<uint32_t> seen;
      for (const Channel& c : fabric_.switch_channels(SwitchIndex(s))) {
        if (distances_[c.to.value()][root] != level - 1) continue;
        if (!every_channel_ && !seen.insert(c.to.value()).second) continue;
        next_[s] = static_cast<int>(c.to.value());
        up_[s] = c.index.value();
        Grow(root, farther, level);
        next_[s] = -1;
      }
      return;
    }
    Grow(root, farther, level - 1);
  }

  void TrySets(uint32_t root, bool farther) {
    for (uint32_t set = 1; set < 1U << next_.size(); ++set) {
      bool possible = true;
      for (uint32_t s = 0; s < next_.size() && possible; ++s) {
        if ((set >> s & 1) == 0) continue;
        possible = IsInTree(s) && capacity_[s].entries_free > 0 && capacity_[s].degree_limit >= 2;
      }
      if (!possible) continue;
      Sender sender(next_, ranks_, capacity_, set);
      if (sender.Leaving(root) != 1 || sender.wrong()) continue;
      choices_.back().insert({farther, set});
      if (!every_channel_) continue;
      LinkChoice choice{set, {}};
      for (uint32_t s = 0; s < next_.size(); ++s) {
        if (next_[s] >= 0) choice.second.emplace_back(up_[s], sender.Leaving(s));
      }
      link_choices_.back().insert(std::move(choice));
    }
  }

  void AssignLinks(size_t c, uint64_t entries, uint32_t most) {
    if (most >= best_most_) return;
    if (c == link_choices_.size()) {
      best_most_ = most;
      return;
    }
    for (const auto& [set, sent] : link_choices_[c]) {
      const auto taken = static_cast<uint64_t>(__builtin_popcount(set));
      if (taken > entries || !Take(set)) continue;
      uint32_t with = most;
      for (const auto& [channel, packets] : sent) {
        with = std::max(with, loads_[channel] += packets);
      }
      AssignLinks(c + 1, entries - taken, with);
      for (const auto& [channel, packets] : sent) loads_[channel] -= packets;
      GiveBack(set);
    }
  }

  void Assign(size_t c, BatchOutcome outcome) {
    if (std::get<0>(outcome) > std::get<0>(best_)) return;
    if (c == choices_.size()) {
      best_ = std::min(best_, outcome);
      return;
    }
    const auto [refused, farther, entries] = outcome;
    for (const auto& [is_farther, set] : choices_[c]) {
      if (!Take(set)) continue;
      Assign(c + 1, {refused, farther + (is_farther ? 1 : 0),
                     entries + static_cast<uint64_t>(__builtin_popcount(set))});
      GiveBack(set);
    }
    Assign(c + 1, {refused + 1, farther, entries});
  }

  bool Take(uint32_t set) {
    for (uint32_t s = 0; s < free_.size(); ++s) {
      if ((set >> s & 1) != 0 && free_[s] == 0) return false;
    }
    for (uint32_t s = 0; s < free_.size(); ++s) free_[s] -= set >> s & 1;
    return true;
  }
  void GiveBack(uint32_t set) {
    for (uint32_t s = 0; s < free_.size(); ++s) free_[s] += set >> s & 1;
  }

  const Fabric& fabric_;
  const absl::Span<const SwitchCapacity> capacity_;
  const RootReach reach_;
  const bool every_channel_;
  const Matrix distances_;
  std::vector<std::set<Choice>> choices_;
  std::vector<std::set<LinkChoice>> link_choices_;
  std::vector<uint32_t> ranks_;  // [switch] of the communicator at hand
  std::vector<int> next_;        // [switch] where it sends to; -1: not in the tree, or the root
  std::vector<uint32_t> up_;     // [switch] the channel to it
  std::vector<uint32_t> free_;
  std::vector<uint32_t> loads_;  // [channel]
  BatchOutcome best_;
  uint32_t best_most_ = 0;
};

}  // namespace

BatchOutcome BestOutcome(const Fabric& fabric, absl::Span<const SwitchCapacity> capacity,
                         absl::Span<const BatchCommunicator> batch, RootReach reach) {
  Oracle oracle(fabric, capacity, reach, false);
  for (const BatchCommunicator& communicator : batch) oracle.Add(communicator);
  return oracle.Best();
}

uint32_t BestMostPackets(const Fabric& fabric, absl::Span<const SwitchCapacity> capacity,
                         absl::Span<const BatchCommunicator> batch, uint64_t most_entries) {
  Oracle oracle(fabric, capacity, RootReach::kAny, true);
  for (const BatchCommunicator& communicator : batch) oracle.Add(communicator);
  return oracle.BestMost(most_entries);
}

}  // namespace coppice
