// What a rank costs where it stands, and who stands where.
//
// What a seating costs, and what a change of it costs, counted from the neighbours of those who
// move alone:
//
//     u: a -> b        delta = sum over partners v of  w(u,v) (D(b, place v) - D(a, place v))
//
// in O(degree). Directions count only where distances do not look the same from both sides; then a
// pair's cost is  out D(a,b) + in D(b,a).  Places a vertex sits at with others of its cluster cost
// D(a,a), which is 0 but in some QAP instances.
#ifndef COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_COST_H_
#define COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_COST_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "daemon/mapping/search/sparse/sparse_problem.h"

namespace coppice {

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

// Who sits where, both ways round, for vertices of size 1: changes in O(1), so that a search can
// ask for the occupants of a place and for its free slots.

inline constexpr uint32_t kNoRank = 0xffffffff;

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

#endif  // COPPICE_DAEMON_MAPPING_SEARCH_SPARSE_SPARSE_COST_H_
