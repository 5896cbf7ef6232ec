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
#include "daemon/mapping/place_distances.h"
#include "daemon/mapping/search/groups/groups.h"
#include "daemon/mapping/search/groups/metis_partition.h"
#include "daemon/mapping/search/random.h"

namespace coppice {

// Which places are near a place, the nearest first: where a search looks for a better seat for
// somebody whose partner sits there (N_C^d of Schulz and Traeff, "Better process mapping and sparse
// quadratic assignment", SEA 2017: "distance d in the communication graph", here: near the
// partner).

// Where groups say all, the ranges of the groups around a place; else a list of the nearest places
// for each. Keeps a pointer to the groups.
class NearPlaces final {
 public:
  static constexpr uint32_t kListed = 64;

  NearPlaces() = default;
  // `groups` must outlive it. Lists are exact up to kAllPairs places, O(places^2); beyond, from
  // what is near along the cables of `fabric`, or in the groups where that is null: O(places).
  // Stopped, it makes do without lists.
  NearPlaces(const PlaceGroups& groups, const PlaceDistances& distances, const Places& places,
             const Fabric* fabric, const SearchControl& control = SearchControl());

  // Calls visit(place) for up to about `limit` places near `place`, itself first.
  template <class Visit>
  void ForEach(uint32_t place, uint32_t limit, const Visit& visit) const {
    if (!lists_.empty()) {
      const uint32_t* const list = &lists_[size_t{place} * listed_];
      for (uint32_t i = 0; i < std::min(limit, listed_); ++i) visit(list[i]);
      return;
    }
    visit(place);
    const PlaceGroups::Node* inner = &groups_->nodes[groups_->leaf[place]];
    for (uint32_t left = limit; left > 0 && inner->parent < Number(*inner);) {
      const PlaceGroups::Node& outer = groups_->nodes[inner->parent];
      // Around the inner range, so that a wide group is not always seen at its beginning.
      for (uint32_t i = inner->end; i < outer.end && left > 0; ++i, --left) visit(At(i));
      for (uint32_t i = inner->begin; i > outer.begin && left > 0; --i, --left) visit(At(i - 1));
      inner = &outer;
    }
  }

  // A place near `place`, nearer ones more often; now and then itself.
  uint32_t Pick(uint32_t place, Xoshiro& random) const {
    if (!lists_.empty()) {
      const uint64_t word = random();
      const uint32_t a = Scale(word >> 32, listed_), b = Scale(word & 0xffffffff, listed_);
      return lists_[size_t{place} * listed_ + std::min(a, b)];
    }
    uint64_t word = random();
    uint32_t node = groups_->leaf[place];
    const PlaceGroups::Node* group = &groups_->nodes[node];
    // Half of the picks within the smallest group, a quarter in the one around it, ...
    do {
      group = &groups_->nodes[group->parent];
      word >>= 1;
    } while ((word & 1) != 0 && group != groups_->nodes.data());
    return At(group->begin + random.Below(group->end - group->begin));
  }

 private:
  static uint32_t Scale(uint64_t bits, uint32_t bound) {
    return static_cast<uint32_t>((bits * bound) >> 32);
  }
  uint32_t Number(const PlaceGroups::Node& node) const {
    return static_cast<uint32_t>(&node - groups_->nodes.data());
  }
  uint32_t At(uint32_t i) const { return groups_->order[i]; }

  const PlaceGroups* groups_ = nullptr;
  uint32_t listed_ = 0;
  std::vector<uint32_t> lists_;  // [place][listed_], the nearest first; empty: by groups
};

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
