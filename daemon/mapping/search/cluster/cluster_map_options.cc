#include "daemon/mapping/search/cluster/cluster_map_options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace coppice {

std::vector<AlgorithmParameter> ClusterMapParameters() {
  return {
      {"clusters", 0, 0, 1 << 24, "k; 0: twice the nodes, at most half of the ranks"},
      {"eigenvectors", kPresetEigenvectors, 0, 1 << 24, "at most so many for k clusters; 0: k"},
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
  if (uint64_t{ranks} * vectors <= kMostCoordinates) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "%s: %d eigenvectors of %d ranks are more than the %d numbers it may keep; give it fewer "
      "(option eigenvectors or clusters) or choose multisection",
      algorithm.name, vectors, ranks, kMostCoordinates));
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
