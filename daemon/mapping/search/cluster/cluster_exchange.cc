#include "daemon/mapping/search/cluster/cluster_exchange.h"

#include <algorithm>
#include <utility>

#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_cost.h"

namespace coppice {
namespace {

// Smaller changes, against what is added up, are rounding.
constexpr uint64_t kAsked = 16;  // pairs between looks at the clock

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
  struct Partner {
    uint32_t cluster;
    typename Cost::Weight weight;
  };

 public:
  ClusterSwaps(const Cost& cost, const Clusters& clusters, std::vector<Noise> noise, Seats& seats)
      : cost_(cost),
        clusters_(clusters),
        noise_(std::move(noise)),
        seats_(seats),
        moved_(seats.size(), false),
        partners_(clusters.size()),
        least_(kCostRounding * CostOf(cost, seats)) {
    done_.noise = static_cast<uint32_t>(noise_.size());
    std::vector<uint32_t> cluster_of(seats.size());
    for (uint32_t c = 0; c < clusters.size(); ++c) {
      for (const uint32_t u : clusters[c]) cluster_of[u] = c;
    }
    for (uint32_t c = 0; c < clusters.size(); ++c) GatherPartners(c, cluster_of);
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
          if (done_.tried % kAsked == 0 && control.stopped()) return;
          since = Try(i, j) ? 0 : since + 1;
        }
      }
    }
  }

  void AtRandom(const ClusterExchangeOptions& options, const SearchControl& control) {
    Xoshiro random(options.seed);
    while (done_.tried < options.iterations) {
      if (done_.tried % kAsked == 0 && control.stopped()) return;
      const uint32_t i = random.Below(static_cast<uint32_t>(noise_.size()));
      if (noise_[i].end - i > 1) {
        Try(i, i + 1 + random.Below(noise_[i].end - i - 1));
      } else {
        ++done_.tried;
      }
    }
  }

  void GatherPartners(uint32_t c, const std::vector<uint32_t>& cluster_of) {
    const WeightedGraph& links = cost_.graph.links;
    std::vector<Partner>& partners = partners_[c];
    for (const uint32_t u : clusters_[c]) {
      for (size_t e = links.begin[u]; e < links.begin[u + 1]; ++e) {
        const uint32_t other = cluster_of[links.neighbours[e]];
        if (other != c) partners.push_back({other, cost_.WeightOf(e)});
      }
    }
    std::sort(partners.begin(), partners.end(),
              [](const Partner& a, const Partner& b) { return a.cluster < b.cluster; });
    size_t kept = 0;
    for (size_t i = 0; i < partners.size(); ++i) {
      if (kept > 0 && partners[kept - 1].cluster == partners[i].cluster) {
        partners[kept - 1].weight += partners[i].weight;
      } else {
        partners[kept++] = partners[i];
      }
    }
    partners.resize(kept);
  }

  // Of cluster `c` from its place to `to`, where `other` sits, which comes here. The pair itself is
  // left out.
  double MoveDeltaOf(uint32_t c, uint32_t other) const {
    const uint32_t from = PlaceOf(c), to = PlaceOf(other);
    double delta = 0;
    for (const Partner& partner : partners_[c]) {
      if (partner.cluster == other) continue;
      const uint32_t at = PlaceOf(partner.cluster);
      delta += cost_.Of(partner.weight, to, at) - cost_.Of(partner.weight, from, at);
    }
    return delta;
  }
  uint32_t PlaceOf(uint32_t c) const { return seats_[clusters_[c][0]]; }

  bool Try(uint32_t i, uint32_t j) {
    ++done_.tried;
    const uint32_t first = noise_[i].cluster, second = noise_[j].cluster;
    // Directions and what ranks send to themselves are left to the exact count.
    if (cost_.graph.self.empty() && cost_.graph.out.empty() &&
        !(MoveDeltaOf(first, second) + MoveDeltaOf(second, first) < 0)) {
      return false;
    }
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
  std::vector<bool> moved_;                     // [vertex] of the pair that is tried
  std::vector<std::vector<Partner>> partners_;  // [cluster] those that it talks to
  const double least_;
  ClusterExchanges done_;
};

}  // namespace

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
