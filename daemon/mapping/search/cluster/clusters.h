// Ranks in clusters that talk much within and little between them: CP-NSC (Wang 2015, algorithm 1),
// normalised spectral clustering of the pattern.
//
//     pattern --> similarity --> Laplacian --> first eigenvectors     a row for each rank,
//                                              v1  v2  v3             made 1 long:
//                                       rank 0  .   .   .              \ | /
//                                       rank 1  .   .   .               \|/   k-means of the ends
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_CLUSTERS_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_CLUSTERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/mapping/algorithm.h"
#include "daemon/mapping/search/groups/metis_partition.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

// The first eigenvectors of a pattern's normalised Laplacian (Wang 2015, algorithm 1, steps 1-4;
// Ng, Jordan and Weiss, "On spectral clustering", 2001): ranks that talk much get rows that point
// the same way.
//
//     S = max-similarity * A' / max A'  off the diagonal, self-similarity on it;   A' = A + A^T
//     d = row sums of S          L = I - D^-1/2 S D^-1/2,      0 <= eigenvalues of L <= 2
//
// The only place that knows Eigen's solvers and Spectra.
struct SimilarityOptions {
  double self = 1;      // of a rank and itself; above 0
  double greatest = 1;  // of the two ranks that exchange most; above 0
};

// [vertex] the diagonal of D: never 0. O(edges).
std::vector<double> SimilarityDegrees(const WeightedGraph& graph,
                                      const SimilarityOptions& similarity);

struct Eigenvectors {
  uint32_t count = 0;
  std::vector<double> values;   // [count] of L, ascending
  std::vector<double> vectors;  // [vertex][count], columns of length 1
  bool dense = false;           // by the dense solver
};

// Beyond, where Lanczos fails, a full matrix takes more than seconds.
inline constexpr uint32_t kMaxDenseVertices = 1500;

// The eigenvectors of the `count` least eigenvalues, or fewer where that many vertices do not exist
// or Lanczos does not get them all. Small graphs and nearly all vectors of one: Eigen's dense
// solver, O(n^3); others: Lanczos with restarts on the sparse matrix (Spectra),
// O(restarts * n * count * (count + degree)), from a start drawn from `seed`. nullopt: stopped, or
// nothing found. Of eigenvalues that coincide Lanczos may return one vector where there are more:
// give it connected graphs. count >= 1. Memory: 7 * count + 40 numbers a vertex at
// most, the basis and the vectors in three forms.
std::optional<Eigenvectors> FirstEigenvectors(const WeightedGraph& graph,
                                              const SimilarityOptions& similarity, uint32_t count,
                                              uint64_t seed, const SearchControl& control);

// Points in many dimensions, row by row. Kept as floats: what decides between two clusters by less
// is a tie.
struct Points {
  uint32_t dimension = 0;
  std::vector<float> values;  // [point][dimension]

  uint32_t count() const { return static_cast<uint32_t>(values.size() / dimension); }
};

struct KMeansOptions {
  uint32_t clusters = 1;
  uint64_t seed = 1;
  uint32_t iterations = 25;
};

struct Clustering {
  std::vector<uint32_t> labels;  // [point]
  uint32_t clusters = 0;         // labels are below; each is used
  double spread = 0;             // sum of squared distances from the clusters' means
};

// K-means (Wang 2015, algorithm 1, step 6): k-means++ seeding (Arthur and Vassilvitskii, SODA
// 2007), then Lloyd's iteration. Fewer clusters than asked for where fewer points differ. A cluster
// that loses all its points begins anew at the point that is farthest from its mean. dimension >=
// 1, at least one point. nullopt: stopped before every point had a cluster; stopped later, what
// there is. O(points * clusters * dimension) an iteration, in products of matrices.
std::optional<Clustering> KMeans(const Points& points, const KMeansOptions& options,
                                 const SearchControl& control);

// Each rank once, each cluster's ranks ascending, clusters by their first rank.
using Clusters = std::vector<std::vector<uint32_t>>;

struct ClusteringOptions {
  uint32_t clusters = 1;
  uint32_t eigenvectors = 0;  // 0: as many as clusters
  SimilarityOptions similarity;
  uint64_t seed = 1;
};

// The eigenvectors, from whose rows k-means makes clusters, differently for each seed.
// Departures from the paper: connected components are clustered by themselves, each into its share
// of the clusters by its ranks, so that there are never fewer clusters than components. (Their
// indicators span the eigenvectors of eigenvalue 0: k-means on all at once would not mix them
// either, but Lanczos is blind for most of them.) A rank's bytes to itself have no part in max A'.
class RankEmbedding final {
 public:
  // For options.clusters clusters or fewer. Stopped on the way, components are left without
  // vectors. O(FirstEigenvectors), see there.
  RankEmbedding(const WeightedGraph& graph, const ClusteringOptions& options,
                const SearchControl& control);

  // So many, at least one for each component, and no more than both together. Where there are no
  // vectors, or k-means is stopped too early: runs of ranks in their order.
  Clusters Cluster(uint32_t clusters, uint64_t seed, const SearchControl& control) const;

  uint32_t eigenvectors() const { return eigenvectors_; }  // of the largest component
  uint32_t components() const { return static_cast<uint32_t>(components_.size()); }

 private:
  struct Component {
    std::vector<uint32_t> ranks;  // ascending
    Eigenvectors vectors;         // count 0: none
  };
  std::vector<uint32_t> ShareOut(uint32_t clusters) const;

  std::vector<Component> components_;
  uint32_t ranks_ = 0;
  uint32_t most_vectors_ = 0;
  uint32_t eigenvectors_ = 0;
};

// The standard deviation of the clusters' sizes, in ranks (Wang 2015, 4.4.2: stdev(clusters)).
double SizeDeviation(const Clusters& clusters);

// Where clusters of ranks go: onto the cores of nodes, in three ways that know sizes alone (Wang
// 2015, 4.4.2, algorithms 2 and 3), and exchanges of whole clusters afterwards.
//
//     clusters a a a, b b b, c c        nodes of 4 cores
//     plain              [a a a b][b b c c]      by first rank, one after the other
//     first-fit          [a a a c][b b b c]      the largest first, where it fits first; the rest
//                                                is split over what is idle
//     clusters a a, b b b b b b
//     first-fit          [b b b b][b b a a][. . . .]
//     most-reservation   [a a b b][b b b b][. . . .]    by first rank, where it fits first, or back
//                                                into idle cores right before, if that leaves more
//                                                nodes wholly idle
//
// Cores of a node fill from its first; so the idle ones are its last.

enum class PlacementScheme : uint8_t { kPlain, kFirstFit, kMaxReservation };

// "plain", "first-fit", "most-reservation".
absl::string_view ToString(PlacementScheme scheme);

// When which: plain below `low` (T_l), first-fit above `high` (T_h) with fewer clusters than
// `clusters` (T_k), most-reservation otherwise.
struct PlacementRule {
  double low = 0, high = 0;  // standard deviations of the clusters' sizes, in ranks
  uint32_t clusters = 0;
};
PlacementScheme ChooseScheme(double deviation, uint32_t clusters, const PlacementRule& rule);

// [cluster][rank of the cluster] its core; cores are numbered through all nodes. `node_cores` hold
// all ranks. A cluster that fits into no idle block is split over what is idle, from the first.
// O(clusters * nodes).
std::vector<std::vector<uint32_t>> PlaceClusters(const Clusters& clusters, PlacementScheme scheme,
                                                 absl::Span<const uint32_t> node_cores);

// Whole clusters of ranks exchanged between their seats: aggregated pair exchange (Wang
// 2015, 4.4.3, algorithm 4: APE).
//
//     node 0  [ c0 c0 c0 | n1 ]        n1 and n3 are noise, of one size: exchange them if that
//     node 1  [ c2 c2 c2 | n3 ]        lessens the cost; the chunks c stay where they are, since
//                                      exchanging them comes to the same
struct ClusterExchangeOptions {
  uint32_t noise_threshold = 0;  // clusters of fewer ranks are noise
  uint64_t iterations = 500000;  // pairs that are tried
  uint64_t seed = 1;
};

struct ClusterExchanges {
  uint32_t noise = 0;  // clusters
  uint64_t tried = 0, made = 0;
  double gained = 0;
};

// Pairs of noise clusters of equal size, all in turn until no exchange gains; where one round would
// take more than `iterations`, drawn at random from `seed`. Never makes `seats`, which seat every
// vertex of the graph, worse. O(pairs of ranks + iterations * exchanges of a cluster's ranks).
ClusterExchanges ExchangeClusters(const SparseGraph& graph, const PlaceDistances& distances,
                                  const Clusters& clusters, const ClusterExchangeOptions& options,
                                  const SearchControl& control, Seats& seats);

// One level of Wang's mapping (2015, 4.3 and 4.4) takes ranks into clusters and clusters onto
// nodes. cp-nsc is one such step; hierarchical clustering one for each group of switches.

// What the paper calls nodes: nodes with their cores, or groups of them that count as one.
struct NodeCores {
  std::vector<uint32_t> sizes;   // [node] cores
  std::vector<uint32_t> places;  // [core] its place; a node's cores in a row
};

// Wang's nodes among the places, near ones in a row: places that take several ranks, or where each
// takes one, the least groups of them that take kMinCores together.
inline constexpr uint32_t kMinCores = 4;
NodeCores NodesOf(const SparseProblem& problem);

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

// The clusters that `count` ranks are to be divided into, in the first try: twice the nodes that
// the ranks fill, at most half of the ranks, unless a number is asked for.
uint32_t ClusterCount(const MethodOptions& options, const NodeCores& nodes, uint32_t count);

// Clusters with ranks moved from large ones to small ones, those that lose least by it, until
// they fill nodes without being split: an equal number of clusters to each of the first nodes,
// which hold all ranks. As they are where their number is no multiple of these nodes'.
Clusters Balanced(const WeightedGraph& graph, const NodeCores& nodes, const Clusters& clusters,
                  const SearchControl& control);

// Of four tries the first is as published; the second and the third make the clusters equal
// (Balanced), of which the third has one for each node; the fourth has METIS halve nodes and ranks
// again and again: where many clusters at once cannot be told apart by the first eigenvectors (the
// sums of CG go along the edges of a cube, all directions of which look alike), two can. Where a
// number of clusters is given, all have it: as published and equal in turn.
//
// Seats all ranks of `graph` on the cores of `nodes`, which hold them. The cheapest of the tries,
// the first of equals; where `whole` is given, which `graph` then is the graph of, single ranks are
// exchanged at the end of each, over all of its places. Equal seeds give equal results for any
// number of threads. Stopped early, ranks are clustered in their order. Parameters are those of
// ClusterMapParameters().
// O(eigenvectors + tries * (k-means + exchanges)), see each.
ClusterMap MapClusters(const SparseGraph& graph, const PlaceDistances& distances,
                       const NodeCores& nodes, const MethodOptions& options,
                       const SparseProblem* whole, const SearchControl& control, Seats& seats);

// Replaces `seats` by block order, places filled by the ranks in their order, if that costs no
// more: where clusters are clear and ranks are numbered along them, as in CG, there is nothing to
// gain (Wang 2015, 5.2.1). Says whether it did.
bool TakeBlockIfNoWorse(const SparseProblem& problem, Seats& seats);

// What a user may set, under the paper's names and with its presets where it names one.
std::vector<AlgorithmParameter> ClusterMapParameters();
// Those and the number of levels.
std::vector<AlgorithmParameter> HierarchicalParameters();

// RESOURCE_EXHAUSTED, naming the algorithm and both numbers: `ranks` ranks in so many clusters have
// more than kMaxCoordinates numbers in their eigenvectors (1 GiB with what Lanczos needs).
inline constexpr size_t kMaxCoordinates = 1 << 24;
inline constexpr uint32_t kPresetEigenvectors = 64;
absl::Status CheckEmbedding(const MethodOptions& options, uint32_t ranks, uint32_t clusters);

// What was placed how, and why.
std::string Describe(const ClusterMap& map, const MethodOptions& options, const NodeCores& nodes);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_CLUSTERS_H_
