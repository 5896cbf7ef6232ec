#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "daemon/mapping/search/cluster/clusters.h"
#include "daemon/mapping/search/partition/partition.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_search.h"

namespace coppice {
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

Manner MannerOf(const MethodOptions& options, uint32_t number) {
  if (!options.Is("vary")) return Manner::kPublished;
  if (options.Is("clusters")) return number % 2 == 0 ? Manner::kPublished : Manner::kEqual;
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

// [rank] its part; those without ranks are left out.
Clusters ClustersOf(const std::vector<uint32_t>& parts, uint32_t count) {
  Clusters clusters(count);
  for (uint32_t rank = 0; rank < parts.size(); ++rank) clusters[parts[rank]].push_back(rank);
  std::erase_if(clusters, [](const auto& cluster) { return cluster.empty(); });
  return clusters;
}

PlacementRule RuleOf(const MethodOptions& options) {
  return {options.Of("t-l"), options.Of("t-h"), options.Count("t-k")};
}

struct OneTry {
  // `embedding`: of as many clusters as the first try has.
  ClusterMap Run(const RankEmbedding& embedding, uint32_t clusters, Manner manner, uint64_t seed,
                 Seats& seats) const {
    ClusterMap map;
    if (manner == Manner::kEqualNodes) clusters = NodesFilledBy(nodes, graph.vertex_count());
    map.eigenvectors = std::min(embedding.eigenvectors(), clusters);
    if (manner == Manner::kHalves) {
      Halve(seed, map);
    } else {
      map.clusters = embedding.Cluster(clusters, seed, control);
    }
    if (manner == Manner::kEqual || manner == Manner::kEqualNodes) {
      map.clusters = Balanced(graph.links, nodes, map.clusters, control);
      map.manner = " made equal";
    }
    map.deviation = SizeDeviation(map.clusters);
    const auto count = static_cast<uint32_t>(map.clusters.size());
    map.scheme = options.Is("placement")
                     ? static_cast<PlacementScheme>(options.Count("placement") - 1)
                     : ChooseScheme(map.deviation, count, RuleOf(options));
    Place(map, seats);
    map.exchanges =
        ExchangeClusters(graph, distances, map.clusters, Exchanges(seed), control, seats);
    if (whole != nullptr) {
      map.ranks_gained = SwapUntilLocalOptimum(*whole, {seed}, control, seats);
    }
    map.cost = VisitCost(distances, graph, [&](const auto& cost) { return CostOf(cost, seats); });
    return map;
  }

  // What METIS declines is cut in the order of the ranks.
  void Halve(uint64_t seed, ClusterMap& map) const {
    const std::vector<uint32_t> sizes = Filling(nodes, graph.vertex_count());
    const PartitionOptions halves = {.seed = seed, .method = PartitionMethod::kRecursiveBisection};
    const std::vector<uint32_t> parts = CutIntoSizes(graph.links, sizes, halves, control)
                                            .value_or(PartsInOrder(graph.links, sizes));
    map.clusters = ClustersOf(parts, static_cast<uint32_t>(sizes.size()));
    map.manner = " by halving";
  }

  void Place(const ClusterMap& map, Seats& seats) const {
    const auto cores = PlaceClusters(map.clusters, map.scheme, nodes.sizes);
    seats.resize(graph.vertex_count());
    for (size_t c = 0; c < cores.size(); ++c) {
      for (size_t i = 0; i < cores[c].size(); ++i) {
        seats[map.clusters[c][i]] = nodes.places[cores[c][i]];
      }
    }
  }

  ClusterExchangeOptions Exchanges(uint64_t seed) const {
    const double fit = *absl::c_max_element(nodes.sizes) + 1;
    return {static_cast<uint32_t>(options.Or("noise-threshold", fit)),
            static_cast<uint64_t>(options.Of("iterations")), seed};
  }

  const SparseGraph& graph;
  const PlaceDistances& distances;
  const NodeCores& nodes;
  const MethodOptions& options;
  const SparseProblem* const whole;
  const SearchControl& control;
};

}  // namespace

NodeCores NodesOf(const SparseProblem& problem) {
  NodeCores nodes;
  const PlaceGroups& groups = problem.groups;
  const bool places_are_nodes = problem.HasSharedPlaces();
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

uint32_t ClusterCount(const MethodOptions& options, const NodeCores& nodes, uint32_t count) {
  if (options.Is("clusters")) return std::min(options.Count("clusters"), count);
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
  const std::vector<uint32_t> order = NumbersBy(
      clusters.size(), [&](uint32_t c) { return -static_cast<int64_t>(clusters[c].size()); });
  std::vector<uint32_t> part_of(ranks);
  for (uint32_t part = 0; part < order.size(); ++part) {
    for (const uint32_t rank : clusters[order[part]]) part_of[rank] = part;
  }
  FitParts(graph, sizes, part_of, control);
  Clusters balanced = ClustersOf(part_of, static_cast<uint32_t>(clusters.size()));
  std::sort(balanced.begin(), balanced.end());
  return balanced;
}

ClusterMap MapClusters(const SparseGraph& graph, const PlaceDistances& distances,
                       const NodeCores& nodes, const MethodOptions& options,
                       const SparseProblem* whole, const SearchControl& control, Seats& seats) {
  const ClusteringOptions clustering = {
      ClusterCount(options, nodes, graph.vertex_count()),
      options.Count("eigenvectors"),
      {options.Of("self-similarity"), options.Of("max-similarity")},
      options.seed};
  const RankEmbedding embedding(graph.links, clustering, control);
  const OneTry one_try{graph, distances, nodes, options, whole, control};
  const uint32_t tries = options.Count("tries");
  std::mutex mutex;
  ClusterMap best;
  uint32_t best_try = tries;
  RunLogicalWorkers(options.threads, tries, [&](uint32_t i) {
    if (i > 0 && control.stopped()) return;
    Seats tried;
    ClusterMap map = one_try.Run(embedding, clustering.clusters, MannerOf(options, i),
                                 WorkerSeed(options.seed, 0, i), tried);
    const std::lock_guard<std::mutex> lock(mutex);
    // Of equals the first, whichever thread ends first.
    if (best_try < tries && std::pair(map.cost, i) >= std::pair(best.cost, best_try)) return;
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

std::vector<AlgorithmParameter> HierarchicalParameters() {
  std::vector<AlgorithmParameter> parameters = ClusterMapParameters();
  parameters.push_back({"levels", 0, 0, 1e6,
                        "levels from the root that are clustered, below ranks fill places in their "
                        "order; 0: all"});
  return parameters;
}

absl::Status CheckEmbedding(const MethodOptions& options, uint32_t ranks, uint32_t clusters) {
  const auto vectors =
      std::min(clusters, static_cast<uint32_t>(options.Or("eigenvectors", clusters)));
  if (uint64_t{ranks} * vectors <= kMaxCoordinates) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s: %d eigenvectors of %d ranks are more than the %d numbers it may keep; give it fewer "
      "(option eigenvectors or clusters) or choose multisection",
      options.algorithm().name, vectors, ranks, kMaxCoordinates));
}

std::string Describe(const ClusterMap& map, const MethodOptions& options, const NodeCores& nodes) {
  const PlacementRule rule = RuleOf(options);
  const std::string reason =
      options.Is("placement") ? "as asked for"
      : map.scheme == PlacementScheme::kPlain
          ? absl::StrFormat("deviation of sizes %.3g below T_l %g", map.deviation, rule.low)
      : map.scheme == PlacementScheme::kFirstFit
          ? absl::StrFormat("deviation of sizes %.3g above T_h %g and fewer than T_k %d clusters",
                            map.deviation, rule.high, rule.clusters)
          : absl::StrFormat("deviation of sizes %.3g with T_l %g, T_h %g and T_k %d", map.deviation,
                            rule.low, rule.high, rule.clusters);
  return absl::StrFormat(
      "%d clusters%s by %d eigenvectors onto %d nodes, %s placement: %s; %d exchanges among %d "
      "clusters of noise%s",
      map.clusters.size(), map.manner, map.eigenvectors, nodes.sizes.size(), ToString(map.scheme),
      reason, map.exchanges.made, map.exchanges.noise,
      map.ranks_gained > 0 ? absl::StrFormat("; exchanges of ranks gained %g", map.ranks_gained)
                           : "");
}

}  // namespace coppice
