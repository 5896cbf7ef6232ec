#include "daemon/mapping/search/sparse/cost_bound.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <variant>
#include <vector>

namespace coppice {
namespace {

constexpr size_t kWorth = size_t{1} << 25;  // distances and products looked at

// [place] the distances of the nearest `count` other slots, ascending.
template <class Distances>
std::vector<std::vector<double>> NearestSlots(const Distances& d,
                                              const std::vector<uint32_t>& capacities,
                                              size_t count) {
  std::vector<std::vector<double>> nearest(capacities.size());
  std::vector<double> row;
  for (uint32_t p = 0; p < capacities.size(); ++p) {
    row.clear();
    for (uint32_t q = 0; q < capacities.size(); ++q) {
      const uint32_t slots = capacities[q] - (p == q ? 1 : 0);
      row.insert(row.end(), std::min<size_t>(slots, count), std::min(d(p, q), d(q, p)));
    }
    const size_t kept = std::min(count, row.size());
    std::partial_sort(row.begin(), row.begin() + static_cast<ptrdiff_t>(kept), row.end());
    nearest[p].assign(row.begin(), row.begin() + static_cast<ptrdiff_t>(kept));
  }
  return nearest;
}

}  // namespace

double LeastCost(const SparseProblem& problem) {
  const WeightedGraph& links = problem.graph.links;
  const size_t places = problem.capacities.size();
  size_t degree = 0, slots = 0;
  for (uint32_t u = 0; u < links.vertex_count(); ++u) {
    degree = std::max(degree, links.begin[u + 1] - links.begin[u]);
  }
  for (const uint32_t capacity : problem.capacities) slots += std::min<size_t>(capacity, degree);
  if (places * (slots + links.neighbours.size()) > kWorth) return 0;
  const auto nearest =
      std::visit([&](const auto& d) { return NearestSlots(d, problem.capacities, degree); },
                 problem.distances->form());
  double least = 0;
  std::vector<double> weights;
  for (uint32_t u = 0; u < links.vertex_count(); ++u) {
    weights.assign(links.weights.begin() + static_cast<ptrdiff_t>(links.begin[u]),
                   links.weights.begin() + static_cast<ptrdiff_t>(links.begin[u + 1]));
    std::sort(weights.begin(), weights.end(), std::greater<>());
    double of_rank = std::numeric_limits<double>::infinity();
    for (uint32_t p = 0; p < places; ++p) {
      const PlaceIndex place(p);
      double sum = problem.graph.self.empty()
                       ? 0
                       : problem.graph.self[u] * (*problem.distances)(place, place);
      for (size_t i = 0; i < weights.size() && sum < of_rank; ++i) {
        sum += 0.5 * weights[i] * nearest[p][i];
      }
      of_rank = std::min(of_rank, sum);
    }
    least += of_rank;
  }
  return least;
}

}  // namespace coppice
