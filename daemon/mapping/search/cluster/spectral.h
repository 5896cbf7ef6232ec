// The first eigenvectors of a pattern's normalised Laplacian (Wang 2015, algorithm 1, steps 1-4;
// Ng, Jordan and Weiss, "On spectral clustering", 2001): ranks that talk much get rows that point
// the same way.
//
//     S = max-similarity * A' / max A'  off the diagonal, self-similarity on it;   A' = A + A^T
//     d = row sums of S          L = I - D^-1/2 S D^-1/2,      0 <= eigenvalues of L <= 2
//
// The only place that knows Eigen's solvers and Spectra.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_SPECTRAL_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_SPECTRAL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/mapping/search/groups/metis_partition.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_SPECTRAL_H_
