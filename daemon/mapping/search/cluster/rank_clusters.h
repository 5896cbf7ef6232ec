// Ranks in clusters by how much they talk, and the eigenvectors that the clusters are found by.
//
// Ranks in clusters that talk much within and little between them: CP-NSC (Wang 2015, algorithm 1),
// normalised spectral clustering of the pattern.
//
//     pattern --> similarity --> Laplacian --> first eigenvectors     a row for each rank,
//                                              v1  v2  v3             made 1 long:
//                                       rank 0  .   .   .              \ | /
//                                       rank 1  .   .   .               \|/   k-means of the ends
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_RANK_CLUSTERS_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_RANK_CLUSTERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/mapping/search/groups/metis_partition.h"
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

// K-means of points in many dimensions (Wang 2015, algorithm 1, step 6): k-means++ seeding (Arthur
// and Vassilvitskii, SODA 2007), then Lloyd's iteration. Knows no ranks.

// Row by row. Kept as floats: what decides between two clusters by less is a tie.
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

// Fewer clusters than asked for where fewer points differ. A cluster that loses all its points
// begins anew at the point that is farthest from its mean. dimension >= 1, at least one point.
// nullopt: stopped before every point had a cluster; stopped later, what there is.
// O(points * clusters * dimension) an iteration, in products of matrices.
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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_RANK_CLUSTERS_H_
