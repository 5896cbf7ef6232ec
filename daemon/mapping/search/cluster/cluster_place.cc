#include "daemon/mapping/search/cluster/cluster_place.h"

#include <algorithm>
#include <numeric>

namespace coppice {
namespace {

constexpr uint32_t kNowhere = 0xffffffff;

// The paper's idleTable.
class IdleCores final {
 public:
  explicit IdleCores(absl::Span<const uint32_t> node_cores)
      : cores_(node_cores.begin(), node_cores.end()), idle_(cores_), begin_(cores_.size(), 0) {
    for (size_t n = 1; n < cores_.size(); ++n) begin_[n] = begin_[n - 1] + cores_[n - 1];
  }

  // The first node whose idle cores hold `size` ranks; where none does, the first that is wholly
  // idle and has enough with those that are wholly idle after it. kNowhere: none.
  uint32_t FirstFor(uint32_t size) const {
    for (uint32_t n = 0; n < cores_.size(); ++n) {
      if (idle_[n] >= size) return n;
    }
    uint32_t room = 0, begin = 0;  // of a run of idle nodes
    for (uint32_t n = 0; n < cores_.size(); ++n) {
      if (!whole(n)) {
        room = 0;
        begin = n + 1;
        continue;
      }
      room += cores_[n];
      if (room >= size) return begin;
    }
    return kNowhere;
  }

  // Where the idle cores begin that lie right before those of `node`; `node` itself if none do.
  uint32_t BeforeOf(uint32_t node) const {
    if (!whole(node)) return node;  // ranks sit between
    while (node > 0 && idle_[node - 1] > 0) {
      --node;
      if (!whole(node)) break;
    }
    return node;
  }

  // Nodes that are no longer wholly idle once `size` ranks go to `node` and on.
  uint32_t Spoilt(uint32_t node, uint32_t size) const {
    uint32_t spoilt = 0;
    for (; size > 0 && node < cores_.size(); ++node) {
      if (whole(node) && cores_[node] > 0) ++spoilt;
      size -= std::min(size, idle_[node]);
    }
    return spoilt;
  }

  // The next `size` idle cores from `node` on.
  std::vector<uint32_t> Take(uint32_t node, uint32_t size) {
    std::vector<uint32_t> taken;
    for (; taken.size() < size; ++node) {
      for (; idle_[node] > 0 && taken.size() < size; --idle_[node]) {
        taken.push_back(begin_[node] + cores_[node] - idle_[node]);
      }
    }
    return taken;
  }

 private:
  bool whole(uint32_t node) const { return idle_[node] == cores_[node]; }

  std::vector<uint32_t> cores_, idle_, begin_;  // [node]
};

}  // namespace

absl::string_view ToString(PlacementScheme scheme) {
  switch (scheme) {
    case PlacementScheme::kPlain:
      return "plain";
    case PlacementScheme::kFirstFit:
      return "first-fit";
    default:
      return "most-reservation";
  }
}

PlacementScheme ChooseScheme(double deviation, uint32_t clusters, const PlacementRule& rule) {
  if (deviation < rule.low) return PlacementScheme::kPlain;
  if (deviation > rule.high && clusters < rule.clusters) return PlacementScheme::kFirstFit;
  return PlacementScheme::kMaxReservation;
}

std::vector<std::vector<uint32_t>> PlaceClusters(const Clusters& clusters, PlacementScheme scheme,
                                                 absl::Span<const uint32_t> node_cores) {
  std::vector<uint32_t> order(clusters.size());
  std::iota(order.begin(), order.end(), 0);
  if (scheme == PlacementScheme::kFirstFit) {
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return clusters[a].size() > clusters[b].size();
    });
  }
  IdleCores idle(node_cores);
  std::vector<std::vector<uint32_t>> cores(clusters.size());
  for (const uint32_t c : order) {
    const auto size = static_cast<uint32_t>(clusters[c].size());
    uint32_t node = scheme == PlacementScheme::kPlain ? 0 : idle.FirstFor(size);
    if (node == kNowhere) {
      node = 0;
    } else if (scheme == PlacementScheme::kMaxReservation) {
      const uint32_t before = idle.BeforeOf(node);
      if (before != node && idle.Spoilt(before, size) < idle.Spoilt(node, size)) node = before;
    }
    cores[c] = idle.Take(node, size);
  }
  return cores;
}

}  // namespace coppice
