#include "daemon/mapping/search/sparse/sparse_problem.h"

#include <limits>
#include <utility>
#include <variant>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/random.h"

namespace coppice {
namespace {

constexpr uint32_t kAround = 256;  // places on either side that are looked at in the groups

// The `listed` nearest of `candidates` to place `p`, itself first, ties in the order of the groups;
// again from the beginning if there are fewer.
template <class Distances>
class NearestLists final {
 public:
  NearestLists(const PlaceGroups& groups, const Distances& d, bool symmetric, uint32_t listed,
               const SearchControl& control)
      : groups_(groups),
        d_(d),
        symmetric_(symmetric),
        listed_(listed),
        control_(control),
        lists_(groups.order.size() * listed) {}

  // Positions in the order of the groups.
  void List(uint32_t p, absl::Span<const uint32_t> candidates) {
    if (stopped_ || (stopped_ = control_.stopped())) return lists_.clear();
    // Most likely as far as the last one's were, so that most candidates need not be sorted.
    Collect(p, candidates, farthest_);
    if (by_distance_.size() < listed_) Collect(p, candidates, kAnywhere);
    const size_t found = std::min<size_t>(listed_, by_distance_.size());
    const auto end = by_distance_.begin() + static_cast<ptrdiff_t>(found);
    std::nth_element(by_distance_.begin(), end - 1, by_distance_.end());
    std::sort(by_distance_.begin(), end);
    farthest_ = (end - 1)->first;
    for (uint32_t i = 0; i < listed_; ++i) {
      lists_[size_t{p} * listed_ + i] = groups_.order[by_distance_[i % found].second];
    }
  }
  std::vector<uint32_t> lists() && { return std::move(lists_); }

 private:
  static constexpr double kAnywhere = std::numeric_limits<double>::infinity();

  // Those of the candidates that are no farther than `farthest`.
  void Collect(uint32_t p, absl::Span<const uint32_t> candidates, double farthest) {
    by_distance_.clear();
    for (const uint32_t i : candidates) {
      const uint32_t q = groups_.order[i];
      const double length = symmetric_ ? d_(p, q) : 0.5 * (d_(p, q) + d_(q, p));
      if (p == q || length <= farthest) by_distance_.emplace_back(p == q ? -1.0 : length, i);
    }
  }

  const PlaceGroups& groups_;
  const Distances& d_;
  const bool symmetric_;
  const uint32_t listed_;
  const SearchControl& control_;
  double farthest_ = kAnywhere;
  bool stopped_ = false;
  std::vector<uint32_t> lists_;
  std::vector<std::pair<double, uint32_t>> by_distance_;
};

uint32_t PositionOf(const PlaceGroups& groups, uint32_t place) {
  return groups.nodes[groups.leaf[place]].begin;
}

// Calls list(place, candidates) for every place, with all places, or those around it in the groups.
template <class List>
void FromGroups(const PlaceGroups& groups, const List& list) {
  const auto count = static_cast<uint32_t>(groups.order.size());
  const std::vector<uint32_t> positions = Numbers(count);
  for (uint32_t p = 0; p < count; ++p) {
    if (count <= kAllPairs) {
      list(p, positions);
      continue;
    }
    const uint32_t at = PositionOf(groups, p), first = at - std::min(at, kAround);
    list(p, absl::MakeConstSpan(positions).subspan(first, std::min(count, at + kAround) - first));
  }
}

// The same with the places of the leaf switches around it.
template <class List>
void FromCables(const PlaceGroups& groups, const Places& places, const Fabric& fabric,
                uint32_t listed, const List& list) {
  LeafRings rings(fabric, places);
  if (!rings.complete()) return FromGroups(groups, list);
  std::vector<std::vector<uint32_t>> positions(rings.count());  // [unit]
  std::vector<uint32_t> weights(rings.count(), 0), candidates;
  for (uint32_t p = 0; p < places.count(); ++p) {
    positions[rings.unit_of(p)].push_back(PositionOf(groups, p));
    ++weights[rings.unit_of(p)];
  }
  for (uint32_t unit = 0; unit < rings.count(); ++unit) {
    candidates.clear();
    for (const uint32_t near : rings.Around(unit, weights, listed)) {
      candidates.insert(candidates.end(), positions[near].begin(), positions[near].end());
    }
    for (const uint32_t i : positions[unit]) list(groups.order[i], candidates);
  }
}

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

NearPlaces::NearPlaces(const PlaceGroups& groups, const PlaceDistances& distances,
                       const Places& places, const Fabric* fabric, const SearchControl& control)
    : groups_(&groups) {
  if (groups.exact) return;
  listed_ = std::min<uint32_t>(kListed, distances.count());
  std::visit(
      [&]<class Distances>(const Distances& d) {
        NearestLists<Distances> lists(groups, d, distances.symmetric(), listed_, control);
        const auto list = [&](uint32_t p, absl::Span<const uint32_t> candidates) {
          lists.List(p, candidates);
        };
        if (std::is_same_v<Distances, ClassDistances> && fabric != nullptr &&
            places.has_endpoints() && places.count() > kAllPairs) {
          FromCables(groups, places, *fabric, listed_, list);
        } else {
          FromGroups(groups, list);
        }
        lists_ = std::move(lists).lists();
      },
      distances.form());
}

bool HasSelfDistances(const PlaceDistances& distances) {
  for (uint32_t p = 0; p < distances.count(); ++p) {
    if (distances(PlaceIndex(p), PlaceIndex(p)) != 0) return true;
  }
  return false;
}

absl::StatusOr<SparsePointer> MakeSparseProblem(const MappingProblem& problem,
                                                const SearchControl& control) {
  auto made = std::make_shared<SparseProblem>();
  ASSIGN_OR_RETURN(made->distances, ObjectiveDistances(problem));
  made->has_self_distances = HasSelfDistances(*made->distances);
  made->graph =
      GraphWith(*problem.pattern, !made->distances->symmetric(), made->has_self_distances);
  for (uint32_t p = 0; p < problem.places->count(); ++p) {
    made->capacities.push_back(problem.places->capacity(PlaceIndex(p)));
  }
  const Snapshot* const snapshot = problem.on_fabric() ? problem.snapshot.get() : nullptr;
  const Fabric* const fabric = snapshot != nullptr ? snapshot->fabric.get() : nullptr;
  made->groups =
      MakePlaceGroups(*problem.places, *made->distances,
                      snapshot != nullptr ? snapshot->hierarchy.get() : nullptr, fabric, control);
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

double CostOf(const SparseProblem& problem, const Seats& seats) {
  return VisitCost(*problem.distances, problem.graph,
                   [&](const auto& cost) { return CostOf(cost, seats); });
}

}  // namespace coppice
