#include "daemon/fabric/leaf_clusters.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace coppice {
namespace {

constexpr size_t kMostTogether = 4;
constexpr uint32_t kUnseen = std::numeric_limits<uint32_t>::max();

class Clustering {
 public:
  explicit Clustering(const Fabric& fabric)
      : fabric_(fabric), distance_(fabric.switch_count(), kUnseen) {}

  // Position of the part that holds all of `leaves`.
  uint32_t Part(std::vector<SwitchIndex> leaves) {
    LeafCluster cluster;
    const size_t cut = leaves.size() > kMostTogether ? Cut(leaves) : 0;
    if (cut == 0) {
      std::sort(leaves.begin(), leaves.end());
      cluster.leaves = std::move(leaves);
    } else {
      const auto middle = leaves.begin() + static_cast<std::ptrdiff_t>(cut);
      cluster.parts.push_back(Part({leaves.begin(), middle}));
      cluster.parts.push_back(Part({middle, leaves.end()}));
    }
    clusters_.push_back(std::move(cluster));
    return static_cast<uint32_t>(clusters_.size() - 1);
  }

  std::vector<LeafCluster> Take() { return std::move(clusters_); }

 private:
  // Distances of `leaves` from `start`, in their order.
  std::vector<uint32_t> DistancesFrom(SwitchIndex start, const std::vector<SwitchIndex>& leaves) {
    queue_.assign(1, start.value());
    distance_[start.value()] = 0;
    std::vector<bool> wanted(fabric_.switch_count());
    for (const SwitchIndex leaf : leaves) wanted[leaf.value()] = true;
    size_t missing = leaves.size();
    for (size_t head = 0; head < queue_.size(); ++head) {
      missing -= wanted[queue_[head]] ? 1 : 0;
      if (missing == 0) break;
      for (const Channel& channel : fabric_.switch_channels(SwitchIndex(queue_[head]))) {
        if (distance_[channel.to.value()] != kUnseen) continue;
        distance_[channel.to.value()] = distance_[queue_[head]] + 1;
        queue_.push_back(channel.to.value());
      }
    }
    std::vector<uint32_t> result;
    for (const SwitchIndex leaf : leaves) result.push_back(distance_[leaf.value()]);
    for (const uint32_t s : queue_) distance_[s] = kUnseen;
    return result;
  }

  static size_t Farthest(const std::vector<uint32_t>& distance) {
    return static_cast<size_t>(std::max_element(distance.begin(), distance.end()) -
                               distance.begin());
  }

  // Orders `leaves` from one end to the other and says how many belong to the first; 0: they are
  // equally far from the ends.
  size_t Cut(std::vector<SwitchIndex>& leaves) {
    std::sort(leaves.begin(), leaves.end());
    const size_t a = Farthest(DistancesFrom(leaves.front(), leaves));
    const std::vector<uint32_t> from_a = DistancesFrom(leaves[a], leaves);
    const std::vector<uint32_t> from_b = DistancesFrom(leaves[Farthest(from_a)], leaves);
    std::vector<std::pair<int64_t, SwitchIndex>> order;
    for (size_t i = 0; i < leaves.size(); ++i) {
      order.emplace_back(int64_t{from_a[i]} - int64_t{from_b[i]}, leaves[i]);
    }
    std::sort(order.begin(), order.end());
    // The ends themselves differ always.
    if (order[1].first == order[order.size() - 2].first) return 0;
    const size_t third = order.size() / 3;
    size_t cut = order.size() / 2;
    for (size_t i = std::max<size_t>(third, 1); i <= order.size() - third - 1; ++i) {
      const auto step = [&](size_t at) { return order[at].first - order[at - 1].first; };
      const auto off_centre = [&](size_t at) {
        return at > order.size() / 2 ? at - order.size() / 2 : order.size() / 2 - at;
      };
      if (step(i) > step(cut) || (step(i) == step(cut) && off_centre(i) < off_centre(cut))) cut = i;
    }
    for (size_t i = 0; i < order.size(); ++i) leaves[i] = order[i].second;
    return cut;
  }

  const Fabric& fabric_;
  std::vector<uint32_t> distance_;  // [switch]; all unseen between searches
  std::vector<uint32_t> queue_;
  std::vector<LeafCluster> clusters_;
};

}  // namespace

std::vector<LeafCluster> ClusterLeaves(const Fabric& fabric, std::vector<SwitchIndex> leaves) {
  Clustering clustering(fabric);
  clustering.Part(std::move(leaves));
  return clustering.Take();
}

}  // namespace coppice
