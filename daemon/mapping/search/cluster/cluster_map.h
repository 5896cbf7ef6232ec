// One level of Wang's mapping (2015, 4.3 and 4.4): ranks into clusters, clusters onto nodes by the
// scheme that suits their sizes, noise exchanged. cp-nsc takes one such step, from the ranks to the
// nodes; hierarchical clustering one for each group of switches.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_CLUSTER_MAP_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_CLUSTER_MAP_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/search/cluster/cluster_place.h"
#include "daemon/mapping/search/cluster/rank_clusters.h"
#include "daemon/mapping/search/groups/metis_partition.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// Ranks in clusters of given sizes by halving again and again: where many clusters at once cannot
// be told apart by the first eigenvectors (the sums of CG go along the edges of a cube, all
// directions of which look alike), two can.
//
//     nodes   0 1 2 3 4 5 6 7      the ranks in the order of an eigenvector, cut where the first
//             |_____| |_____|      half of the nodes is full; pairs over the cut exchanged
//             |_| |_| |_| |_|      (Kernighan and Lin); each half alone, by its own eigenvectors

struct BisectionOptions {
  SimilarityOptions similarity;
  uint32_t tries = 4;  // orders of each cut: the second eigenvector, then random mixtures of a few
  uint64_t seed = 1;
};

// A cluster for each size, in the order of `sizes`, whose sum is the number of vertices; none for a
// size of 0. Clusters that come one after the other are near each other in the pattern, too. Once
// stopped, it cuts in the order of the ranks. O(log(sizes) * (eigenvectors + tries * pairs)).
Clusters BisectRanks(const WeightedGraph& graph, absl::Span<const uint32_t> sizes,
                     const BisectionOptions& options, const SearchControl& control);

// Exchanges vertices of side 0 for vertices of side 1 while that lessens the weight between the
// sides: the best of either side in turn, losses included, up to the best point met (B. Kernighan
// and S. Lin, "An efficient heuristic procedure for partitioning graphs", 1970; single moves in
// turn after Fiduccia and Mattheyses, 1982). Returns what it gained. O(edges * log(vertices)) a
// round.
double ExchangeOverCut(const WeightedGraph& graph, const SearchControl& control,
                       std::vector<uint32_t>& sides);

// What the paper calls nodes: nodes with their cores, or groups of them that count as one.
struct NodeCores {
  std::vector<uint32_t> sizes;   // [node] cores
  std::vector<uint32_t> places;  // [core] its place; a node's cores in a row
};

// Wang's nodes among the places, near ones in a row: places that take several ranks, or where each
// takes one, the least groups of them that take kMinCores together.
inline constexpr uint32_t kMinCores = 4;
NodeCores NodesOf(const SparseProblem& problem);

struct ClusterMapOptions {
  uint32_t clusters = 0;  // 0: twice the nodes that the ranks fill, at most half of the ranks
  uint32_t most_eigenvectors = 0;
  SimilarityOptions similarity;
  PlacementRule rule;
  uint32_t scheme = 0;           // 0: by the rule; else 1 + a PlacementScheme
  uint32_t noise_threshold = 0;  // 0: the cores of the largest node, and one
  uint64_t iterations = 0;       // of exchanges of noise
  uint32_t tries = 1;            // of k-means, each judged by what its mapping costs
  bool vary = true;              // tries after the first: otherwise than published, see below
  bool exchange_ranks = true;    // in the end
  uint64_t seed = 1;
  uint32_t threads = 1;
};

struct ClusterMap {
  Clusters clusters;
  const char* manner = "";  // how clusters were made, if not by k-means alone
  double deviation = 0;     // of their sizes
  PlacementScheme scheme = PlacementScheme::kPlain;
  ClusterExchanges exchanges;
  double ranks_gained = 0;  // by exchanges of single ranks
  uint32_t eigenvectors = 0;
  double cost = 0;
};

// The clusters that `count` ranks are to be divided into, in the first try.
uint32_t ClusterCount(const ClusterMapOptions& options, const NodeCores& nodes, uint32_t count);

// Clusters with ranks moved from large ones to small ones, those that lose least by it, until
// they fill nodes without being split: an equal number of clusters to each of the first nodes,
// which hold all ranks. As they are where their number is no multiple of these nodes'.
Clusters Balanced(const WeightedGraph& graph, const NodeCores& nodes, const Clusters& clusters,
                  const SearchControl& control);

// Of four tries the first is as published; the second and the third make the clusters equal
// (Balanced), of which the third has one for each node; the fourth halves nodes and ranks again and
// again (BisectRanks). Where a number of clusters is given, all have it: as published and
// equal in turn.
//
// Seats all ranks of `graph` on the cores of `nodes`, which hold them. The cheapest of the tries,
// the first of equals; where `whole` is given, which `graph` then is the graph of, single ranks are
// exchanged at the end of each, over all of its places. Equal seeds give equal results for any
// number of threads. Stopped early, ranks are clustered in their order.
// O(eigenvectors + tries * (k-means + exchanges)), see each.
ClusterMap MapClusters(const SparseGraph& graph, const PlaceDistances& distances,
                       const NodeCores& nodes, const ClusterMapOptions& options,
                       const SparseProblem* whole, const SearchControl& control, Seats& seats);

// Replaces `seats` by block order, places filled by the ranks in their order, if that costs no
// more: where clusters are clear and ranks are numbered along them, as in CG, there is nothing to
// gain (Wang 2015, 5.2.1). Says whether it did.
bool TakeBlockIfNoWorse(const SparseProblem& problem, Seats& seats);

// What a user may set of Wang's mapping by clusters, under the paper's names, and what is said of
// it afterwards: the same for cp-nsc and for hierarchical clustering.

// The parameters of algorithms that take these options, with Wang's presets where he names one.
std::vector<AlgorithmParameter> ClusterMapParameters();
// Of an algorithm that has them.
ClusterMapOptions ClusterMapOptionsOf(const MappingAlgorithm& algorithm,
                                      const AlgorithmOptions& options);

// RESOURCE_EXHAUSTED, naming the algorithm and both numbers: `ranks` ranks in so many clusters have
// more than kMaxCoordinates numbers in their eigenvectors (1 GiB with what Lanczos needs).
inline constexpr size_t kMaxCoordinates = 1 << 24;
inline constexpr uint32_t kPresetEigenvectors = 64;
absl::Status CheckEmbedding(const MappingAlgorithm& algorithm, const ClusterMapOptions& options,
                            uint32_t ranks, uint32_t clusters);

// What was placed how, and why.
std::string Describe(const ClusterMap& map, const ClusterMapOptions& options,
                     const NodeCores& nodes);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_CLUSTER_MAP_H_
