// K-means of points in many dimensions (Wang 2015, algorithm 1, step 6): k-means++ seeding (Arthur
// and Vassilvitskii, SODA 2007), then Lloyd's iteration. Knows no ranks.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_K_MEANS_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_K_MEANS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/mapping/search_control.h"

namespace coppice {

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

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_CLUSTER_K_MEANS_H_
