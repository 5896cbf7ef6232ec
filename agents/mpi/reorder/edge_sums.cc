#include "agents/mpi/reorder/edge_sums.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace coppice::mpi {

EdgeSums AddUp(std::vector<Edge> edges) {
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
  });
  EdgeSums sums;
  const Edge* last = nullptr;
  for (const Edge& edge : edges) {
    if (edge.from == edge.to || edge.weight <= 0) continue;
    if (last != nullptr && last->from == edge.from && last->to == edge.to) {
      sums.weights.back() += edge.weight;
      continue;
    }
    sums.from.push_back(static_cast<uint32_t>(edge.from));
    sums.to.push_back(static_cast<uint32_t>(edge.to));
    sums.weights.push_back(edge.weight);
    last = &edge;
  }
  return sums;
}

std::vector<Edge> GridEdges(const std::vector<int>& sizes, const std::vector<bool>& wraps) {
  int nodes = 1;
  for (const int size : sizes) nodes *= size;
  std::vector<Edge> edges;
  for (int node = 0; node < nodes; ++node) {
    int stride = nodes;
    for (size_t dimension = 0; dimension < sizes.size(); ++dimension) {
      const int size = sizes[dimension];
      stride /= size;
      const int at = node / stride % size;
      for (const int step : {-1, 1}) {
        int other = at + step;
        if (wraps[dimension]) other = (other + size) % size;
        if (other >= 0 && other < size) edges.push_back({node, node + (other - at) * stride, 1});
      }
    }
  }
  return edges;
}

}  // namespace coppice::mpi
