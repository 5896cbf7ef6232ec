#include <algorithm>
#include <utility>

#include "daemon/mapping/search/cluster/clusters.h"
#include "daemon/mapping/search/random.h"

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

constexpr uint64_t kPairsBetweenLooks = 16;  // pairs between looks at the clock

// A cluster among those of its size.
struct Noise {
  uint32_t cluster;
  uint32_t end;  // of its size's run
};

// Sizes in runs.
std::vector<Noise> NoiseOf(const Clusters& clusters, uint32_t threshold) {
  std::vector<Noise> noise;
  for (uint32_t c = 0; c < clusters.size(); ++c) {
    if (clusters[c].size() < threshold) noise.push_back({c, 0});
  }
  const auto size = [&](const Noise& n) { return clusters[n.cluster].size(); };
  std::stable_sort(noise.begin(), noise.end(),
                   [&](const Noise& a, const Noise& b) { return size(a) < size(b); });
  for (auto i = static_cast<uint32_t>(noise.size()); i-- > 0;) {
    const bool last = i + 1 == noise.size() || size(noise[i]) != size(noise[i + 1]);
    noise[i].end = last ? i + 1 : noise[i + 1].end;
  }
  return noise;
}

template <class Cost>
class ClusterSwaps final {
 public:
  ClusterSwaps(const Cost& cost, const Clusters& clusters, std::vector<Noise> noise, Seats& seats)
      : cost_(cost),
        clusters_(clusters),
        noise_(std::move(noise)),
        seats_(seats),
        moved_(seats.size(), false),
        least_(kCostRounding * CostOf(cost, seats)) {
    done_.noise = static_cast<uint32_t>(noise_.size());
  }

  ClusterExchanges Run(const ClusterExchangeOptions& options, const SearchControl& control) {
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < noise_.size(); ++i) pairs += noise_[i].end - i - 1;
    if (pairs > options.iterations) {
      AtRandom(options, control);
    } else {
      InTurn(pairs, options, control);
    }
    return done_;
  }

 private:
  void InTurn(uint64_t pairs, const ClusterExchangeOptions& options, const SearchControl& control) {
    uint64_t since = 0;
    while (since < pairs) {
      for (uint32_t i = 0; i < noise_.size(); ++i) {
        for (uint32_t j = i + 1; j < noise_[i].end; ++j) {
          if (since >= pairs || done_.tried >= options.iterations) return;
          if (done_.tried % kPairsBetweenLooks == 0 && control.stopped()) return;
          since = Try(i, j) ? 0 : since + 1;
        }
      }
    }
  }

  void AtRandom(const ClusterExchangeOptions& options, const SearchControl& control) {
    Xoshiro random(options.seed);
    while (done_.tried < options.iterations) {
      if (done_.tried % kPairsBetweenLooks == 0 && control.stopped()) return;
      const uint32_t i = random.Below(static_cast<uint32_t>(noise_.size()));
      if (noise_[i].end - i > 1) {
        Try(i, i + 1 + random.Below(noise_[i].end - i - 1));
      } else {
        ++done_.tried;
      }
    }
  }

  bool Try(uint32_t i, uint32_t j) {
    ++done_.tried;
    const std::vector<uint32_t>& a = clusters_[noise_[i].cluster];
    const std::vector<uint32_t>& b = clusters_[noise_[j].cluster];
    Mark(a, true);
    Mark(b, true);
    const double before = CostAt(a) + CostAt(b);
    Swap(a, b);
    const double delta = CostAt(a) + CostAt(b) - before;
    Mark(a, false);
    Mark(b, false);
    if (!(delta < -least_)) {
      Swap(a, b);
      return false;
    }
    ++done_.made;
    done_.gained -= delta;
    return true;
  }

  void Mark(const std::vector<uint32_t>& cluster, bool moved) {
    for (const uint32_t u : cluster) moved_[u] = moved;
  }

  void Swap(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
    for (size_t i = 0; i < a.size(); ++i) std::swap(seats_[a[i]], seats_[b[i]]);
  }

  // Pairs of which both move are met from both ends.
  double CostAt(const std::vector<uint32_t>& cluster) const {
    const WeightedGraph& links = cost_.graph.links;
    double sum = 0;
    for (const uint32_t u : cluster) {
      const uint32_t here = seats_[u];
      if (!cost_.graph.self.empty()) sum += cost_.graph.self[u] * cost_.d(here, here);
      for (size_t e = links.begin[u]; e < links.begin[u + 1]; ++e) {
        const uint32_t v = links.neighbours[e];
        const double pair = cost_.Of(cost_.WeightOf(e), here, seats_[v]);
        sum += moved_[v] ? 0.5 * pair : pair;
      }
    }
    return sum;
  }

  const Cost cost_;
  const Clusters& clusters_;
  const std::vector<Noise> noise_;
  Seats& seats_;
  std::vector<bool> moved_;  // [vertex] of the pair that is tried
  const double least_;
  ClusterExchanges done_;
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
  const std::vector<uint32_t> order = NumbersBy(clusters.size(), [&](uint32_t c) {
    return scheme == PlacementScheme::kFirstFit ? -static_cast<int64_t>(clusters[c].size()) : 0;
  });
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

ClusterExchanges ExchangeClusters(const SparseGraph& graph, const PlaceDistances& distances,
                                  const Clusters& clusters, const ClusterExchangeOptions& options,
                                  const SearchControl& control, Seats& seats) {
  std::vector<Noise> noise = NoiseOf(clusters, options.noise_threshold);
  if (noise.size() < 2) return {static_cast<uint32_t>(noise.size()), 0, 0, 0};
  return VisitCost(distances, graph, [&](const auto& cost) {
    return ClusterSwaps(cost, clusters, std::move(noise), seats).Run(options, control);
  });
}

}  // namespace coppice
