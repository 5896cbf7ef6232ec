#include "daemon/mapping/search/sparse/sparse_problem.h"

#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/mapping_metrics.h"

namespace coppice {
namespace {

using DistancesPointer = std::shared_ptr<const PlaceDistances>;

// Only forwarding tables may lead anywhere but along a shortest path.
absl::StatusOr<DistancesPointer> LinkDistances(const MappingProblem& problem) {
  const Routes& routes = *problem.snapshot->routes;
  if (problem.traffic == TrafficModel::kRoutes && routes.kind() == RouteKind::kForwardingTables) {
    return PlaceDistances::RouteLengths(*problem.places, routes);
  }
  return PlaceDistances::Hops(*problem.places, routes.distances());
}

absl::StatusOr<DistancesPointer> Mixed(const MappingProblem& problem, const PlaceDistances& links) {
  const Mapping present = problem.present();
  const auto scale = [&](double weight, const PlaceDistances& d) {
    const double cost = QapCost(*problem.pattern, d, present);
    return cost > 0 ? weight / cost : weight;
  };
  const double of_links = scale(problem.objective.hop_bytes, links);
  const double of_qap = scale(problem.objective.qap_cost, *problem.distances);
  const uint32_t count = problem.places->count();
  std::vector<double> values;
  values.reserve(size_t{count} * count);
  for (uint32_t a = 0; a < count; ++a) {
    for (uint32_t b = 0; b < count; ++b) {
      values.push_back(of_links * links(PlaceIndex(a), PlaceIndex(b)) +
                       of_qap * (*problem.distances)(PlaceIndex(a), PlaceIndex(b)));
    }
  }
  return PlaceDistances::Matrix(count, std::move(values));
}

absl::StatusOr<DistancesPointer> ObjectiveDistances(const MappingProblem& problem) {
  const Objective& objective = problem.objective;
  if (!objective.needs_fabric()) return problem.distances;
  if (objective.qap_cost == 0) return LinkDistances(problem);
  if (objective.hop_bytes == 0 || problem.places->count() > kMaxMixedPlaces) {
    return problem.distances;
  }
  ASSIGN_OR_RETURN(const DistancesPointer links, LinkDistances(problem));
  return Mixed(problem, *links);
}

SparseGraph GraphWith(const Pattern& pattern, bool directed, bool with_self) {
  SparseGraph graph;
  graph.links = GraphOf(pattern);
  for (uint32_t r = 0; r < pattern.rank_count(); ++r) {
    if (with_self) graph.self.push_back(pattern.self_bytes(r));
    if (!directed) continue;
    for (const Exchange& exchange : pattern.exchanges(r)) {
      graph.out.push_back(exchange.out_bytes);
      graph.in.push_back(exchange.in_bytes);
    }
  }
  return graph;
}

}  // namespace

bool HasSelfDistances(const PlaceDistances& distances) {
  for (uint32_t p = 0; p < distances.count(); ++p) {
    if (distances(PlaceIndex(p), PlaceIndex(p)) != 0) return true;
  }
  return false;
}

absl::StatusOr<std::shared_ptr<const SparseProblem>> MakeSparseProblem(
    const MappingProblem& problem, const SearchControl& control) {
  auto made = std::make_shared<SparseProblem>();
  ASSIGN_OR_RETURN(made->distances, ObjectiveDistances(problem));
  made->has_self_distances = HasSelfDistances(*made->distances);
  made->graph =
      GraphWith(*problem.pattern, !made->distances->symmetric(), made->has_self_distances);
  for (uint32_t p = 0; p < problem.places->count(); ++p) {
    made->capacities.push_back(problem.places->capacity(PlaceIndex(p)));
  }
  const bool on_fabric = problem.snapshot != nullptr && problem.places->has_endpoints();
  const Fabric* const fabric = on_fabric ? problem.snapshot->fabric.get() : nullptr;
  made->groups =
      MakePlaceGroups(*problem.places, *made->distances,
                      on_fabric ? problem.snapshot->hierarchy.get() : nullptr, fabric, control);
  made->near = NearPlaces(made->groups, *made->distances, *problem.places, fabric, control);
  made->is_objective = problem.objective.congestion == 0 &&
                       (problem.objective.hop_bytes == 0 || problem.objective.qap_cost == 0 ||
                        problem.places->count() <= kMaxMixedPlaces);
  return made;
}

std::vector<uint32_t> PlacesOf(const Mapping& mapping) {
  std::vector<uint32_t> places;
  places.reserve(mapping.size());
  for (const PlaceIndex p : mapping) places.push_back(p.value());
  return places;
}

Mapping MappingOf(const std::vector<uint32_t>& places) {
  return Mapping(places.begin(), places.end());
}

}  // namespace coppice
