#include "daemon/mapping/search/sparse/sparse_arrange.h"

#include <numeric>

#include "daemon/mapping/search/sparse/sparse_anneal.h"
#include "daemon/mapping/search/sparse/sparse_coarsen.h"
#include "daemon/mapping/search/sparse/sparse_swaps.h"

namespace coppice {
namespace {

constexpr double kProposals = 300;  // for each part
constexpr double kHot = 0.5;
constexpr uint32_t kMostParts = 4096;

double Cost(const SparseProblem& problem, const Seats& seats) {
  return VisitCost(*problem.distances, problem.graph,
                   [&](const auto& cost) { return CostOf(cost, seats); });
}

}  // namespace

void ArrangeParts(const SparseProblem& problem, uint64_t seed, const SearchControl& control,
                  Seats& seats) {
  const auto places = static_cast<uint32_t>(problem.capacities.size());
  if (problem.groups.exact || places > kMostParts) return;
  for (const uint32_t capacity : problem.capacities) {
    if (capacity != problem.capacities[0]) return;
  }
  // Places without ranks are parts, too: somebody may be better off there.
  std::vector<uint32_t> part_of(seats);
  SparseProblem parts;
  parts.graph = Contract(problem.graph, part_of, problem.has_self_distances);
  const auto count = parts.graph.vertex_count();
  parts.graph.links.vertex_sizes.assign(count, 1);
  parts.distances = problem.distances;
  parts.capacities.assign(places, 1);
  parts.groups = problem.groups;
  parts.near = problem.near;
  parts.has_self_distances = problem.has_self_distances;
  Seats arranged(count);
  std::iota(arranged.begin(), arranged.end(), 0);
  const double before = Cost(parts, arranged);
  Seats annealed = arranged;
  SwapUntilLocalOptimum(parts, {seed}, control, arranged);
  Anneal(parts, {seed, kHot, kProposals}, control, annealed);
  SwapUntilLocalOptimum(parts, {seed}, control, annealed);
  if (Cost(parts, annealed) < Cost(parts, arranged)) arranged = annealed;
  if (!(Cost(parts, arranged) < before)) return;
  for (uint32_t& seat : seats) seat = arranged[seat];
}

}  // namespace coppice
