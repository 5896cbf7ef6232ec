#include "daemon/mapping/search/cluster/cluster_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search/sparse/sparse_swaps.h"
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

namespace {

// Appends a node of the places that `groups` has from `begin` to `end`.
void AddNode(const SparseProblem& problem, uint32_t begin, uint32_t end, NodeCores& nodes) {
  const size_t before = nodes.places.size();
  for (uint32_t i = begin; i < end; ++i) {
    const uint32_t place = problem.groups.order[i];
    nodes.places.insert(nodes.places.end(), problem.capacities[place], place);
  }
  nodes.sizes.push_back(static_cast<uint32_t>(nodes.places.size() - before));
}

// The nodes, from the first, that `ranks` ranks fill.
uint32_t NodesFilledBy(const NodeCores& nodes, uint32_t ranks) {
  uint64_t room = 0;
  for (uint32_t n = 0; n < nodes.sizes.size(); ++n) {
    room += nodes.sizes[n];
    if (room >= ranks) return n + 1;
  }
  return static_cast<uint32_t>(nodes.sizes.size());
}

enum class Manner : uint8_t { kPublished, kEqual, kEqualNodes, kHalves };

Manner MannerOf(const ClusterMapOptions& options, uint32_t number) {
  if (!options.vary) return Manner::kPublished;
  if (options.clusters > 0) return number % 2 == 0 ? Manner::kPublished : Manner::kEqual;
  return static_cast<Manner>(number % 4);
}

// How many ranks each of the filled nodes takes.
std::vector<uint32_t> Filling(const NodeCores& nodes, uint32_t ranks) {
  std::vector<uint32_t> sizes;
  for (uint32_t n = 0; ranks > 0; ++n) {
    sizes.push_back(std::min(ranks, nodes.sizes[n]));
    ranks -= sizes.back();
  }
  return sizes;
}

class OneTry final {
 public:
  OneTry(const SparseGraph& graph, const PlaceDistances& distances, const NodeCores& nodes,
         const ClusterMapOptions& options, const SparseProblem* whole, const SearchControl& control)
      : graph_(graph),
        distances_(distances),
        nodes_(nodes),
        options_(options),
        whole_(whole),
        control_(control) {}

  // `embedding`: of as many clusters as the first try has.
  ClusterMap Run(const RankEmbedding& embedding, uint32_t clusters, Manner manner, uint64_t seed,
                 Seats& seats) const {
    ClusterMap map;
    if (manner == Manner::kEqualNodes) clusters = NodesFilledBy(nodes_, graph_.vertex_count());
    map.eigenvectors = std::min(embedding.eigenvectors(), clusters);
    if (manner == Manner::kHalves) {
      Halve(seed, map);
    } else {
      map.clusters = embedding.Cluster(clusters, seed, control_);
    }
    if (manner == Manner::kEqual || manner == Manner::kEqualNodes) {
      map.clusters = Balanced(graph_.links, nodes_, map.clusters, control_);
      map.manner = " made equal";
    }
    map.deviation = SizeDeviation(map.clusters);
    const auto count = static_cast<uint32_t>(map.clusters.size());
    map.scheme = options_.scheme > 0 ? static_cast<PlacementScheme>(options_.scheme - 1)
                                     : ChooseScheme(map.deviation, count, options_.rule);
    Place(map, seats);
    map.exchanges =
        ExchangeClusters(graph_, distances_, map.clusters, Exchanges(seed), control_, seats);
    if (whole_ != nullptr) {
      SwapOptions swaps;
      swaps.seed = seed;
      map.ranks_gained = SwapUntilLocalOptimum(*whole_, swaps, control_, seats);
    }
    map.cost = VisitCost(distances_, graph_, [&](const auto& cost) { return CostOf(cost, seats); });
    return map;
  }

 private:
  void Halve(uint64_t seed, ClusterMap& map) const {
    BisectionOptions halves;
    halves.similarity = options_.similarity;
    halves.seed = seed;
    map.clusters =
        BisectRanks(graph_.links, Filling(nodes_, graph_.vertex_count()), halves, control_);
    map.manner = " by halving";
  }

  void Place(const ClusterMap& map, Seats& seats) const {
    const auto cores = PlaceClusters(map.clusters, map.scheme, nodes_.sizes);
    seats.resize(graph_.vertex_count());
    for (size_t c = 0; c < cores.size(); ++c) {
      for (size_t i = 0; i < cores[c].size(); ++i) {
        seats[map.clusters[c][i]] = nodes_.places[cores[c][i]];
      }
    }
  }

  ClusterExchangeOptions Exchanges(uint64_t seed) const {
    ClusterExchangeOptions exchanges;
    exchanges.noise_threshold = options_.noise_threshold;
    if (exchanges.noise_threshold == 0) {
      exchanges.noise_threshold = *std::max_element(nodes_.sizes.begin(), nodes_.sizes.end()) + 1;
    }
    exchanges.iterations = options_.iterations;
    exchanges.seed = seed;
    return exchanges;
  }

  const SparseGraph& graph_;
  const PlaceDistances& distances_;
  const NodeCores& nodes_;
  const ClusterMapOptions& options_;
  const SparseProblem* const whole_;
  const SearchControl& control_;
};

}  // namespace

NodeCores NodesOf(const SparseProblem& problem) {
  NodeCores nodes;
  const PlaceGroups& groups = problem.groups;
  const bool places_are_nodes = std::any_of(problem.capacities.begin(), problem.capacities.end(),
                                            [](uint32_t capacity) { return capacity > 1; });
  std::vector<uint32_t> open = {0};
  while (!open.empty()) {
    const PlaceGroups::Node& group = groups.nodes[open.back()];
    open.pop_back();
    bool divides = places_are_nodes && group.child_count > 0;
    for (uint32_t i = 0; i < group.child_count; ++i) {
      divides = divides || groups.nodes[group.first_child + i].capacity >= kMinCores;
    }
    if (!divides) {
      AddNode(problem, group.begin, group.end, nodes);
      continue;
    }
    for (uint32_t i = group.child_count; i-- > 0;) open.push_back(group.first_child + i);
  }
  return nodes;
}

uint32_t ClusterCount(const ClusterMapOptions& options, const NodeCores& nodes, uint32_t count) {
  if (options.clusters > 0) return std::min(options.clusters, count);
  return std::clamp(2 * NodesFilledBy(nodes, count), 1U, std::max(1U, count / 2));
}

Clusters Balanced(const WeightedGraph& graph, const NodeCores& nodes, const Clusters& clusters,
                  const SearchControl& control) {
  const uint32_t ranks = graph.vertex_count(), filled = NodesFilledBy(nodes, ranks);
  if (clusters.size() % filled != 0) return clusters;
  const auto each = static_cast<uint32_t>(clusters.size() / filled);
  std::vector<uint32_t> sizes;
  for (const uint32_t here : Filling(nodes, ranks)) {
    for (uint64_t i = 0; i < each; ++i) {
      sizes.push_back(static_cast<uint32_t>(here * (i + 1) / each - here * i / each));
    }
  }
  // The largest clusters become the largest parts.
  std::sort(sizes.rbegin(), sizes.rend());
  std::vector<uint32_t> order(clusters.size()), part_of(ranks);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return clusters[a].size() > clusters[b].size(); });
  for (uint32_t part = 0; part < order.size(); ++part) {
    for (const uint32_t rank : clusters[order[part]]) part_of[rank] = part;
  }
  BalanceParts(graph, sizes, part_of, control);
  Clusters balanced(clusters.size());
  for (uint32_t rank = 0; rank < ranks; ++rank) balanced[part_of[rank]].push_back(rank);
  std::erase_if(balanced, [](const auto& cluster) { return cluster.empty(); });
  std::sort(balanced.begin(), balanced.end());
  return balanced;
}

ClusterMap MapClusters(const SparseGraph& graph, const PlaceDistances& distances,
                       const NodeCores& nodes, const ClusterMapOptions& options,
                       const SparseProblem* whole, const SearchControl& control, Seats& seats) {
  ClusteringOptions clustering;
  clustering.clusters = ClusterCount(options, nodes, graph.vertex_count());
  clustering.eigenvectors = options.most_eigenvectors;
  clustering.similarity = options.similarity;
  clustering.seed = options.seed;
  const RankEmbedding embedding(graph.links, clustering, control);
  const OneTry one_try(graph, distances, nodes, options, whole, control);
  std::mutex mutex;
  ClusterMap best;
  uint32_t best_try = options.tries;
  RunLogicalWorkers(options.threads, options.tries, [&](uint32_t i) {
    if (i > 0 && control.stopped()) return;
    Seats tried;
    ClusterMap map = one_try.Run(embedding, clustering.clusters, MannerOf(options, i),
                                 WorkerSeed(options.seed, 0, i), tried);
    const std::lock_guard<std::mutex> lock(mutex);
    // Of equals the first, whichever thread ends first.
    if (best_try < options.tries && std::pair(map.cost, i) >= std::pair(best.cost, best_try))
      return;
    best = std::move(map);
    best_try = i;
    seats = std::move(tried);
  });
  return best;
}

bool TakeBlockIfNoWorse(const SparseProblem& problem, Seats& seats) {
  Seats block;
  for (uint32_t p = 0; p < problem.capacities.size() && block.size() < seats.size(); ++p) {
    block.insert(block.end(), std::min<size_t>(problem.capacities[p], seats.size() - block.size()),
                 p);
  }
  const auto [now, then] = VisitCost(*problem.distances, problem.graph, [&](const auto& cost) {
    return std::pair(CostOf(cost, seats), CostOf(cost, block));
  });
  if (then > now * (1 + kCostRounding)) return false;
  seats = std::move(block);
  return true;
}

std::vector<AlgorithmParameter> ClusterMapParameters() {
  return {
      {"clusters", 0, 0, Places::kMaxSlots, "k; 0: twice the nodes, at most half of the ranks"},
      {"eigenvectors", kPresetEigenvectors, 0, Pattern::kMaxRanks,
       "at most so many for k clusters; 0: k"},
      {"self-similarity", 1, 1e-6, 1e6, "SELF_SIMILARITY, of a rank and itself"},
      {"max-similarity", 1, 1e-6, 1e6, "MAX_SIMILARITY, of the two ranks that exchange most"},
      {"t-l", 0.5, 0, 1e9, "T_l: below this deviation of the clusters' sizes, plain placement"},
      {"t-h", 4, 0, 1e9, "T_h: above it and with fewer than T_k clusters, first-fit"},
      {"t-k", 1000, 0, 1e9, "T_k: see T_h; otherwise most-reservation"},
      {"placement", 0, 0, 3, "0: by T_l, T_h, T_k; 1: plain; 2: first-fit; 3: most-reservation"},
      {"noise-threshold", 0, 0, 1e9,
       "NOISE_THRESHOLD: clusters of fewer ranks are exchanged; 0: those that fit into a node"},
      {"iterations", 500000, 0, 1e12, "pairs of clusters that are tried"},
      {"tries", 12, 1, 1000, "runs of k-means; the one whose mapping costs least is taken"},
      {"vary", 1, 0, 1,
       "1: tries make clusters equal, one for each node, or by halving; 0: as published"},
      {"exchange-ranks", 1, 0, 1, "1: pair exchange of single ranks in the end; 0: as published"},
  };
}

ClusterMapOptions ClusterMapOptionsOf(const MappingAlgorithm& algorithm,
                                      const AlgorithmOptions& options) {
  const auto value = [&](absl::string_view name) { return ParameterOf(algorithm, options, name); };
  const auto count = [&](absl::string_view name) { return static_cast<uint32_t>(value(name)); };
  ClusterMapOptions map;
  map.clusters = count("clusters");
  map.most_eigenvectors = count("eigenvectors");
  map.similarity = {value("self-similarity"), value("max-similarity")};
  map.rule = {value("t-l"), value("t-h"), count("t-k")};
  map.scheme = count("placement");
  map.noise_threshold = count("noise-threshold");
  map.iterations = static_cast<uint64_t>(value("iterations"));
  map.tries = count("tries");
  map.vary = count("vary") != 0;
  map.exchange_ranks = count("exchange-ranks") != 0;
  map.seed = options.seed;
  map.threads = options.threads;
  return map;
}

absl::Status CheckEmbedding(const MappingAlgorithm& algorithm, const ClusterMapOptions& options,
                            uint32_t ranks, uint32_t clusters) {
  const uint32_t vectors =
      options.most_eigenvectors == 0 ? clusters : std::min(clusters, options.most_eigenvectors);
  if (uint64_t{ranks} * vectors <= kMaxCoordinates) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s: %d eigenvectors of %d ranks are more than the %d numbers it may keep; give it fewer "
      "(option eigenvectors or clusters) or choose multisection",
      algorithm.name, vectors, ranks, kMaxCoordinates));
}

std::string Describe(const ClusterMap& map, const ClusterMapOptions& options,
                     const NodeCores& nodes) {
  const std::string reason =
      options.scheme != 0 ? "as asked for"
      : map.scheme == PlacementScheme::kPlain
          ? absl::StrFormat("deviation of sizes %.3g below T_l %g", map.deviation, options.rule.low)
      : map.scheme == PlacementScheme::kFirstFit
          ? absl::StrFormat("deviation of sizes %.3g above T_h %g and fewer than T_k %d clusters",
                            map.deviation, options.rule.high, options.rule.clusters)
          : absl::StrFormat("deviation of sizes %.3g with T_l %g, T_h %g and T_k %d", map.deviation,
                            options.rule.low, options.rule.high, options.rule.clusters);
  return absl::StrFormat(
      "%d clusters%s by %d eigenvectors onto %d nodes, %s placement: %s; %d exchanges among %d "
      "clusters of noise%s",
      map.clusters.size(), map.manner, map.eigenvectors, nodes.sizes.size(), ToString(map.scheme),
      reason, map.exchanges.made, map.exchanges.noise,
      map.ranks_gained > 0 ? absl::StrFormat("; exchanges of ranks gained %g", map.ranks_gained)
                           : "");
}

}  // namespace coppice
