#include "daemon/placement/pattern_problem.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "daemon/base/status_macros.h"

namespace coppice {

absl::StatusOr<MappingProblem> PatternProblem(const PlacementQuestion& question,
                                              absl::Span<const HostIndex> hosts) {
  const Fabric& fabric = *question.snapshot.fabric;
  std::vector<EndpointIndex> endpoints;
  for (const HostIndex h : hosts) {
    const auto all = fabric.endpoints_of_host(h);
    endpoints.push_back(*std::min_element(all.begin(), all.end()));
  }
  MappingProblem problem;
  problem.pattern = question.request.pattern;
  ASSIGN_OR_RETURN(problem.places,
                   Places::OfEndpoints(fabric, endpoints, question.request.ranks_per_host));
  ASSIGN_OR_RETURN(problem.distances,
                   PlaceDistances::Hops(*problem.places, question.snapshot.routes->distances()));
  problem.snapshot = std::make_shared<const Snapshot>(question.snapshot);
  // Shortest paths are a guess at what the subnet will do: then all of them, in equal shares.
  problem.traffic = question.snapshot.routes->kind() == RouteKind::kShortestPath
                        ? TrafficModel::kEvenShortestPaths
                        : TrafficModel::kRoutes;
  problem.use_load = !question.snapshot.load->empty();
  problem.objective.congestion = 1;
  return problem;
}

double TrafficOf(const PlacementQuestion& question, double max_congestion) {
  const double bytes = question.request.pattern->total_bytes();
  const double least = question.snapshot.fabric->least_capacity_gbps();
  if (bytes <= 0) return 0;
  return max_congestion * question.request.constraints.host_count * (least > 0 ? least : 1) / bytes;
}

}  // namespace coppice
