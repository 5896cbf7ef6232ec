// Wang's mapping by clusters: Wang Tao, Qing Peng, Wei Di, Qi Fengbin, "Optimization of
// process-to-core mapping based on clustering analysis", Chinese Journal of Computers 38(5), 2015,
// sections 4.3 (algorithm 1, CP-NSC) and 4.4 (algorithms 2 to 4).
//
//      pattern            k = 2 x nodes clusters        placement             exchange of noise
//                           (eigenvectors, k-means)
//     0 - 4   1 - 5          {0 4 8} {1 5 9}         node 0 [0 4 8 | 3]       [0 4 8 | 7]
//      \ /     \ /           {2 6 10} {3} {7}        node 1 [1 5 9 | 7]  ->   [1 5 9 | 3]
//       8       9    ...
//
//     1-2  A' = A + A^T;  s_ij = a'_ij / max A' * MAX_SIMILARITY,  s_ii = SELF_SIMILARITY
//     3-4  L = I - D^-1/2 S D^-1/2, its first k eigenvectors          (search/spectral)
//     5-6  rows made 1 long, k-means                                  (search/rank_clusters)
//     4.4.2  plain             if stdev(sizes) < T_l                  (search/cluster_place)
//            first-fit         if stdev(sizes) > T_h and k < T_k
//            most-reservation  otherwise
//     4.4.3  clusters below NOISE_THRESHOLD, of equal size, exchanged (search/cluster_exchange)
//
// The cost is the aggregated QAP's: between clusters alone (eq. 2-3); the note gives it. The paper
// names no values for T_l, T_h, T_k, MAX_SIMILARITY and NOISE_THRESHOLD: the presets are ours.
//
// Departures, each an option. Without them (tries 1, vary 0, exchange-ranks 0, eigenvectors 0) the
// method is behind METIS and pair exchange on small stencils, for the reasons given:
//   - `exchange-ranks`: pair exchange of single ranks near their partners in the end. Clusters have
//     any size, nodes have not: a cluster that is split over two nodes is repaired by nothing else.
//   - `tries` runs of k-means, judged by the cost of their mappings; the paper takes one.
//   - `vary`: some of them with equal clusters, two for each node and one, which no node splits:
//     the aggregated exchange then has all pairs to try. And some by halving again and again
//     (search/rank_bisection): where eigenvalues coincide, as those of CG's sums over rows longer
//     than a node, k clusters at once are cut across in any direction, and halves are not.
//     Block order, if it costs no more, is the answer: on CG the paper finds just that.
//   - `eigenvectors`: at most 64 for any number of clusters. Clusters of ranks in two or three
//     dimensions are told apart by few; all k of them would be most of the time from 1,000 ranks
//     on.
//   - NOISE_THRESHOLD is above a node's cores: whole nodes are exchanged as well.
// And: connected components are clustered apart, each scaled by its own heaviest pair
// (search/rank_clusters); k is at most half of the
// ranks; where places take one rank each, nodes are the least groups of four places or more.
//
// O(restarts * P * e * (e + degree)) for e eigenvectors, O(P * k * e) for an iteration of k-means.
#include "daemon/mapping/algorithm/cp_nsc.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/cluster/cluster_map_options.h"

namespace coppice {
namespace {

// [rank] its cluster.
std::vector<uint32_t> LabelsOf(const Clusters& clusters, uint32_t ranks) {
  std::vector<uint32_t> labels(ranks);
  for (uint32_t c = 0; c < clusters.size(); ++c) {
    for (const uint32_t rank : clusters[c]) labels[rank] = c;
  }
  return labels;
}

absl::StatusOr<Mapped> RunCpNsc(const MappingProblem& problem, const Mapping&,
                                const AlgorithmOptions& options, const SearchControl& control) {
  const ClusterMapOptions map_options = ClusterMapOptionsOf(CpNscAlgorithm(), options);
  const uint32_t ranks = problem.rank_count();
  ASSIGN_OR_RETURN(const std::shared_ptr<const SparseProblem> sparse,
                   MakeSparseProblem(problem, control));
  const NodeCores nodes = NodesOf(*sparse);
  RETURN_IF_ERROR(CheckEmbedding(CpNscAlgorithm(), map_options, ranks,
                                 ClusterCount(map_options, nodes, ranks)));
  Seats seats;
  const ClusterMap map =
      MapClusters(sparse->graph, *sparse->distances, nodes, map_options,
                  map_options.exchange_ranks ? sparse.get() : nullptr, control, seats);
  const bool is_block = map_options.vary && TakeBlockIfNoWorse(*sparse, seats);
  Mapped mapped{MappingOf(seats), Describe(map, map_options, nodes)};
  if (is_block) absl::StrAppend(&mapped.note, "; block order costs no more");
  absl::StrAppendFormat(&mapped.note, "; AQAP cost %g of QAP cost %g",
                        AggregatedQapCost(*problem.pattern, *problem.distances, mapped.mapping,
                                          LabelsOf(map.clusters, ranks)),
                        QapCost(*problem.pattern, *problem.distances, mapped.mapping));
  return mapped;
}

}  // namespace

const MappingAlgorithm& CpNscAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{"cp-nsc", "Wang 2015, algorithms 1 to 4",
                                                        false, ClusterMapParameters(), RunCpNsc};
  return *entry;
}

}  // namespace coppice
