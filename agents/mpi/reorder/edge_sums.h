// Edges of a topology as the pattern that Coppice is asked with: each pair once, nothing to
// oneself.
#ifndef COPPICE_AGENTS_MPI_REORDER_EDGE_SUMS_H_
#define COPPICE_AGENTS_MPI_REORDER_EDGE_SUMS_H_

#include <cstdint>
#include <vector>

#include "agents/mpi/reorder/order.h"

namespace coppice::mpi {

struct EdgeSums {
  std::vector<uint32_t> from, to;
  std::vector<double> weights;  // all above 0
};

// O(edges log edges).
EdgeSums AddUp(std::vector<Edge> edges);

// Both ends of every edge of a grid of `sizes`, numbered with the last dimension fastest, as
// MPI_Cart_create does.
std::vector<Edge> GridEdges(const std::vector<int>& sizes, const std::vector<bool>& wraps);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_REORDER_EDGE_SUMS_H_
