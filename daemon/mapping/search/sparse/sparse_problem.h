// A mapping problem as the searches over sparse patterns want it: who talks to whom as a graph, the
// distances whose weighted sum is minimised, capacities, and which places are near which.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_PROBLEM_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_PROBLEM_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/search/cluster/groups.h"
#include "daemon/mapping/search/partition/metis_partition.h"
#include "daemon/mapping/search/sparse/sparse_near.h"

namespace coppice {

// Vertices are ranks, or clusters of ranks that move together (sparse_multilevel.h).
struct SparseGraph {
  WeightedGraph links;          // weights: both directions together
  std::vector<double> out, in;  // [edge in a row]; empty unless directions count
  std::vector<double> self;     // [vertex] what it sends to itself; empty if nothing

  uint32_t vertex_count() const { return links.vertex_count(); }
};

// Immutable once made.
struct SparseProblem {
  SparseGraph graph;
  std::shared_ptr<const PlaceDistances> distances;
  std::vector<uint32_t> capacities;  // [place]
  PlaceGroups groups;
  NearPlaces near;
  bool has_self_distances = false;  // some D(a,a) is not 0
  // The objective is the cost alone, divided by what it is for the present order.
  bool is_objective = false;

  // Places take many ranks each: moves over the border matter more than swaps of two.
  bool HasLargePlaces() const { return graph.vertex_count() > 4 * capacities.size(); }
  // Some place takes several: its ranks together may be better off on another, where none of them
  // alone is.
  bool HasSharedPlaces() const {
    return std::any_of(capacities.begin(), capacities.end(), [](uint32_t c) { return c > 1; });
  }
};

// The distances are those of the QAP cost, the links of the routes, or both weighed as the
// objective weighs them (for no more than kMaxMixedPlaces places; beyond, the QAP cost's). An
// objective that is congestion alone gets the links. Errors as PlaceDistances::RouteLengths.
// O(pairs), and MakePlaceGroups; stopped, its groups are coarser.
inline constexpr uint32_t kMaxMixedPlaces = 4096;
absl::StatusOr<std::shared_ptr<const SparseProblem>> MakeSparseProblem(
    const MappingProblem& problem, const SearchControl& control = SearchControl());

// Some D(a,a) is not 0, as in some QAP instances. O(places).
bool HasSelfDistances(const PlaceDistances& distances);

// [vertex] place as the searches keep it, and back.
std::vector<uint32_t> PlacesOf(const Mapping& mapping);
Mapping MappingOf(const std::vector<uint32_t>& places);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_PROBLEM_H_
