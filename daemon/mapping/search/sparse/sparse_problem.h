// A mapping problem as the searches over sparse patterns want it: who talks to whom as a graph, the
// distances whose weighted sum is minimised, capacities, and which places are near which.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_PROBLEM_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_PROBLEM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/places.h"
#include "daemon/mapping/search/groups/groups.h"
#include "daemon/mapping/search/groups/metis_partition.h"
#include "daemon/mapping/search/random.h"

namespace coppice {

// Which places are near a place, the nearest first: where a search looks for a better seat for
// somebody whose partner sits there (N_C^d of Schulz and Traeff, "Better process mapping and sparse
// quadratic assignment", SEA 2017: "distance d in the communication graph", here: near the
// partner). Where groups say all, the ranges of the groups around a place; else a list of the
// nearest places for each. Keeps a pointer to the groups.
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

// Vertices are ranks, or clusters of ranks that move together (sparse_search.h).
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

using SparsePointer = std::shared_ptr<const SparseProblem>;

// The distances are those of the QAP cost, the links of the routes, or both weighed as the
// objective weighs them (for no more than kMaxMixedPlaces places; beyond, the QAP cost's). An
// objective that is congestion alone gets the links. Errors as PlaceDistances::RouteLengths.
// O(pairs), and MakePlaceGroups; stopped, its groups are coarser.
inline constexpr uint32_t kMaxMixedPlaces = 4096;
absl::StatusOr<SparsePointer> MakeSparseProblem(const MappingProblem& problem,
                                                const SearchControl& control = SearchControl());

// Some D(a,a) is not 0, as in some QAP instances. O(places).
bool HasSelfDistances(const PlaceDistances& distances);

// [vertex] place as the searches keep it, and back.
std::vector<uint32_t> PlacesOf(const Mapping& mapping);
Mapping MappingOf(const std::vector<uint32_t>& places);

// What a seating costs, and what a change of it costs, counted from the neighbours of those who
// move alone:
//
//     u: a -> b        delta = sum over partners v of  w(u,v) (D(b, place v) - D(a, place v))
//
// in O(degree). Directions count only where distances do not look the same from both sides; then a
// pair's cost is  out D(a,b) + in D(b,a).  Places a vertex sits at with others of its cluster cost
// D(a,a), which is 0 but in some QAP instances.

using Seats = std::vector<uint32_t>;  // [vertex] place
// Costs that differ by less than this part of them are equal: sums in another order.
inline constexpr double kCostRounding = 1e-12;

template <class Distances>
struct SymmetricCost {
  using Weight = double;
  const Distances& d;
  const SparseGraph& graph;

  double WeightOf(size_t e) const { return graph.links.weights[e]; }
  double Of(double weight, uint32_t a, uint32_t b) const { return weight * d(a, b); }
};

template <class Distances>
struct DirectedCost {
  struct Weight {
    double out = 0, in = 0;
    Weight& operator+=(const Weight& other) {
      out += other.out;
      in += other.in;
      return *this;
    }
  };
  const Distances& d;
  const SparseGraph& graph;

  Weight WeightOf(size_t e) const { return {graph.out[e], graph.in[e]}; }
  double Of(const Weight& w, uint32_t a, uint32_t b) const {
    return w.out * d(a, b) + w.in * d(b, a);
  }
};

// visit(cost), with the type of cost that distances and graph ask for.
template <class Visit>
auto VisitCost(const PlaceDistances& distances, const SparseGraph& graph, const Visit& visit) {
  return std::visit(
      [&]<class Distances>(const Distances& d) {
        if constexpr (!std::is_same_v<Distances, LevelDistances>) {
          if (!graph.out.empty()) return visit(DirectedCost<Distances>{d, graph});
        }
        return visit(SymmetricCost<Distances>{d, graph});
      },
      distances.form());
}

template <class Cost>
double SelfDelta(const Cost& cost, uint32_t u, uint32_t from, uint32_t to) {
  if (cost.graph.self.empty()) return 0;
  return cost.graph.self[u] * (cost.d(to, to) - cost.d(from, from));
}

// The cost of all pairs. O(edges).
template <class Cost>
double CostOf(const Cost& cost, const Seats& seats) {
  const WeightedGraph& links = cost.graph.links;
  double sum = 0;
  for (uint32_t u = 0; u < seats.size(); ++u) {
    if (!cost.graph.self.empty()) sum += cost.graph.self[u] * cost.d(seats[u], seats[u]);
    for (size_t e = links.begin[u]; e < links.begin[u + 1]; ++e) {
      const uint32_t v = links.neighbours[e];
      if (v > u) sum += cost.Of(cost.WeightOf(e), seats[u], seats[v]);
    }
  }
  return sum;
}
double CostOf(const SparseProblem& problem, const Seats& seats);

// What it costs to move `u` to the free slot of `to`.
template <class Cost>
double MoveDelta(const Cost& cost, const Seats& seats, uint32_t u, uint32_t to) {
  const WeightedGraph& links = cost.graph.links;
  const uint32_t from = seats[u];
  double delta = SelfDelta(cost, u, from, to);
  for (size_t e = links.begin[u]; e < links.begin[u + 1]; ++e) {
    const uint32_t at = seats[links.neighbours[e]];
    const auto weight = cost.WeightOf(e);
    delta += cost.Of(weight, to, at) - cost.Of(weight, from, at);
  }
  return delta;
}

// What remains of a swap of `u` and `w` when MoveDelta(u, place of w) is known.
template <class Cost>
double SwapRest(const Cost& cost, const Seats& seats, uint32_t u, uint32_t w) {
  const WeightedGraph& links = cost.graph.links;
  const uint32_t from = seats[w], to = seats[u];
  double delta = SelfDelta(cost, w, from, to);
  for (size_t e = links.begin[w]; e < links.begin[w + 1]; ++e) {
    const uint32_t v = links.neighbours[e];
    const auto weight = cost.WeightOf(e);
    // The pair itself changes ends; u's move has counted it as if w stayed.
    delta += v == u ? cost.Of(weight, to, from) - cost.Of(weight, from, from)
                    : cost.Of(weight, to, seats[v]) - cost.Of(weight, from, seats[v]);
  }
  return delta;
}

template <class Cost>
double SwapDelta(const Cost& cost, const Seats& seats, uint32_t u, uint32_t w) {
  return MoveDelta(cost, seats, u, seats[w]) + SwapRest(cost, seats, u, w);
}

inline constexpr uint32_t kNoRank = 0xffffffff;

// Who sits where, both ways round, for vertices of size 1: changes in O(1), so that a search can
// ask for the occupants of a place and for its free slots.
class Occupants final {
 public:
  // No place has more vertices than its capacity.
  Occupants(const std::vector<uint32_t>& capacities, std::vector<uint32_t> seats)
      : seats_(std::move(seats)), begin_(capacities.size() + 1, 0), load_(capacities.size(), 0) {
    for (size_t p = 0; p < capacities.size(); ++p) begin_[p + 1] = begin_[p] + capacities[p];
    slots_.resize(begin_.back());
    at_.resize(seats_.size());
    for (uint32_t u = 0; u < seats_.size(); ++u) Put(u, seats_[u]);
  }

  const std::vector<uint32_t>& seats() const { return seats_; }
  uint32_t capacity(uint32_t place) const { return begin_[place + 1] - begin_[place]; }
  uint32_t free(uint32_t place) const { return capacity(place) - load_[place]; }
  absl::Span<const uint32_t> of(uint32_t place) const {
    return absl::MakeConstSpan(slots_).subspan(begin_[place], load_[place]);
  }

  // `to` has a free slot.
  void Move(uint32_t u, uint32_t to) {
    const uint32_t from = seats_[u];
    const uint32_t last = slots_[begin_[from] + --load_[from]];
    slots_[at_[u]] = last;
    at_[last] = at_[u];
    Put(u, to);
  }
  void Swap(uint32_t u, uint32_t w) {
    std::swap(seats_[u], seats_[w]);
    std::swap(at_[u], at_[w]);
    slots_[at_[u]] = u;
    slots_[at_[w]] = w;
  }

 private:
  void Put(uint32_t u, uint32_t place) {
    seats_[u] = place;
    at_[u] = begin_[place] + load_[place]++;
    slots_[at_[u]] = u;
  }

  std::vector<uint32_t> seats_;  // [vertex]
  std::vector<uint32_t> at_;     // [vertex] its slot
  std::vector<uint32_t> begin_;  // [place + 1] into slots_
  std::vector<uint32_t> load_;   // [place]
  std::vector<uint32_t> slots_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_PROBLEM_H_
