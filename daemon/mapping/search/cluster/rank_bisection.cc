#include "daemon/mapping/search/cluster/rank_bisection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search_control.h"

namespace coppice {
namespace {

constexpr uint32_t kVectors = 4;
constexpr uint32_t kRounds = 8;           // of exchanges over one cut
constexpr uint32_t kWithoutGain = 60;     // exchanges after the best point of a round
constexpr double kWeightRounding = 1e-9;  // of the heaviest vertex: smaller gains are none

class CutExchange final {
 public:
  CutExchange(const WeightedGraph& graph, std::vector<uint32_t>& sides)
      : graph_(graph), sides_(sides), gains_(sides.size()) {}

  // One round: its gain, 0 and no change if there is none.
  double Round() {
    Open();
    std::vector<uint32_t> moved;
    double gain = 0, best = least_;
    size_t kept = 0;
    while (!open_[0].empty() && !open_[1].empty() && moved.size() < kept + 2 * kWithoutGain) {
      for (const uint32_t side : {0u, 1u}) {
        const auto [lost, u] = *open_[side].begin();
        gain -= lost;
        Move(u);
        moved.push_back(u);
      }
      if (gain <= best) continue;
      best = gain;
      kept = moved.size();
    }
    for (size_t i = kept; i < moved.size(); ++i) sides_[moved[i]] ^= 1;
    return kept > 0 ? best : 0;
  }

 private:
  void Open() {
    open_[0].clear();
    open_[1].clear();
    for (uint32_t u = 0; u < sides_.size(); ++u) {
      gains_[u] = 0;
      double all = 0;
      for (size_t e = graph_.begin[u]; e < graph_.begin[u + 1]; ++e) {
        const double weight = graph_.weights[e];
        gains_[u] += sides_[graph_.neighbours[e]] == sides_[u] ? -weight : weight;
        all += weight;
      }
      least_ = std::max(least_, kWeightRounding * all);
      open_[sides_[u]].emplace(-gains_[u], u);
    }
  }

  // To the other side, for the rest of the round.
  void Move(uint32_t u) {
    open_[sides_[u]].erase({-gains_[u], u});
    for (size_t e = graph_.begin[u]; e < graph_.begin[u + 1]; ++e) {
      const uint32_t v = graph_.neighbours[e];
      const double change = 2 * graph_.weights[e] * (sides_[v] == sides_[u] ? 1 : -1);
      const auto at = open_[sides_[v]].find({-gains_[v], v});
      gains_[v] += change;
      if (at == open_[sides_[v]].end()) continue;
      open_[sides_[v]].erase(at);
      open_[sides_[v]].emplace(-gains_[v], v);
    }
    sides_[u] ^= 1;
  }

  const WeightedGraph& graph_;
  std::vector<uint32_t>& sides_;
  std::vector<double> gains_;                                  // [vertex] of its move alone
  std::array<std::set<std::pair<double, uint32_t>>, 2> open_;  // [side] (-gain, vertex)
  double least_ = 0;
};

class Halving final {
 public:
  Halving(const BisectionOptions& options, const SearchControl& control)
      : options_(options), control_(control) {}

  // `ranks` ascending, `graph` among them.
  void Divide(const WeightedGraph& graph, const std::vector<uint32_t>& ranks,
              absl::Span<const uint32_t> sizes) {
    if (ranks.empty()) return;
    if (sizes.size() == 1) {
      clusters_.push_back(ranks);
      return;
    }
    const size_t middle = sizes.size() / 2;
    const uint32_t first = std::accumulate(sizes.begin(), sizes.begin() + middle, 0U);
    const std::vector<uint32_t> sides = Cut(graph, first);
    for (const uint32_t side : {0u, 1u}) {
      std::vector<uint32_t> kept;
      const WeightedGraph half = Subgraph(graph, sides, side, kept);
      for (uint32_t& rank : kept) rank = ranks[rank];
      Divide(half, kept, side == 0 ? sizes.subspan(0, middle) : sizes.subspan(middle));
    }
  }

  Clusters TakeClusters() { return std::move(clusters_); }

 private:
  // `first` vertices on side 0.
  std::vector<uint32_t> Cut(const WeightedGraph& graph, uint32_t first) {
    const uint32_t n = graph.vertex_count();
    std::vector<uint32_t> order(n), best;
    std::iota(order.begin(), order.end(), 0);
    if (first == 0 || first == n) return SidesOf(order, first);
    const uint64_t seed = WorkerSeed(options_.seed, 2, cuts_++);
    const std::optional<Eigenvectors> vectors =
        FirstEigenvectors(graph, options_.similarity, kVectors, seed, control_);
    if (!vectors.has_value()) return SidesOf(order, first);
    Xoshiro random(seed);
    double least = 0;
    for (uint32_t i = 0; i < options_.tries; ++i) {
      Sort(Heights(graph, *vectors, i, random), order);
      std::vector<uint32_t> sides = SidesOf(order, first);
      ExchangeOverCut(graph, control_, sides);
      const double weight = CutWeight(graph, sides);
      if (best.empty() || weight < least) {
        best = std::move(sides);
        least = weight;
      }
    }
    return best;
  }

  // Along the second vector, or a mixture of all; of D^-1/2 v, which is constant on a component for
  // the eigenvalue 0.
  std::vector<double> Heights(const WeightedGraph& graph, const Eigenvectors& vectors,
                              uint32_t number, Xoshiro& random) const {
    std::vector<double> weights(vectors.count);
    for (double& weight : weights) weight = random.Unit() - 0.5;
    if (number == 0 && vectors.count > 1) {
      std::fill(weights.begin(), weights.end(), 0);
      weights[1] = 1;
    }
    const std::vector<double> degrees = SimilarityDegrees(graph, options_.similarity);
    std::vector<double> heights(degrees.size(), 0);
    for (size_t u = 0; u < heights.size(); ++u) {
      for (uint32_t j = 0; j < vectors.count; ++j) {
        heights[u] += weights[j] * vectors.vectors[u * vectors.count + j];
      }
      heights[u] /= std::sqrt(degrees[u]);
    }
    return heights;
  }

  static void Sort(const std::vector<double>& heights, std::vector<uint32_t>& order) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return heights[a] < heights[b]; });
  }

  static std::vector<uint32_t> SidesOf(const std::vector<uint32_t>& order, uint32_t first) {
    std::vector<uint32_t> sides(order.size(), 1);
    for (uint32_t i = 0; i < first; ++i) sides[order[i]] = 0;
    return sides;
  }

  static double CutWeight(const WeightedGraph& graph, const std::vector<uint32_t>& sides) {
    double weight = 0;
    for (uint32_t u = 0; u < sides.size(); ++u) {
      for (size_t e = graph.begin[u]; e < graph.begin[u + 1]; ++e) {
        if (sides[graph.neighbours[e]] != sides[u]) weight += graph.weights[e];
      }
    }
    return weight;
  }

  const BisectionOptions& options_;
  const SearchControl& control_;
  Clusters clusters_;
  uint32_t cuts_ = 0;
};

}  // namespace

double ExchangeOverCut(const WeightedGraph& graph, const SearchControl& control,
                       std::vector<uint32_t>& sides) {
  CutExchange exchange(graph, sides);
  double gained = 0;
  for (uint32_t round = 0; round < kRounds && !control.stopped(); ++round) {
    const double gain = exchange.Round();
    if (gain == 0) break;
    gained += gain;
  }
  return gained;
}

Clusters BisectRanks(const WeightedGraph& graph, absl::Span<const uint32_t> sizes,
                     const BisectionOptions& options, const SearchControl& control) {
  std::vector<uint32_t> ranks(graph.vertex_count());
  std::iota(ranks.begin(), ranks.end(), 0);
  Halving halving(options, control);
  halving.Divide(graph, ranks, sizes);
  return halving.TakeClusters();
}

}  // namespace coppice
