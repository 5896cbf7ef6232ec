#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_search.h"

namespace coppice {
namespace {

constexpr uint32_t kMinPerPlace = 6;     // vertices of the coarsest level, at least
constexpr uint32_t kPiecesPerPlace = 6;  // no vertex is a larger part of a place than this
constexpr double kWorthALevel = 0.95;    // of the vertices: a level that keeps more is the last

struct Level {
  SparseGraph graph;
  std::vector<uint32_t> coarse_of;  // [vertex of the level below]
};

uint32_t CountOf(const std::vector<uint32_t>& coarse_of) {
  return coarse_of.empty() ? 0 : *std::max_element(coarse_of.begin(), coarse_of.end()) + 1;
}

constexpr uint32_t kRounds = 2;        // over the border at most
constexpr double kWorthARound = 1e-4;  // of the cost: a round that gains less is the last
constexpr uint32_t kFruitless = 60;    // moves after the best of a try

template <class Cost>
class MoveSearch final {
 public:
  MoveSearch(const Cost& cost, const SparseProblem& problem, uint64_t seed,
             const SearchControl& control, Seats& seats)
      : cost_(cost),
        links_(cost.graph.links),
        control_(control),
        seats_(seats),
        room_(problem.capacities.begin(), problem.capacities.end()),
        at_place_(room_.size()),
        moved_in_(seats.size(), 0),
        random_(seed) {
    for (uint32_t u = 0; u < seats.size(); ++u) room_[seats[u]] -= links_.vertex_sizes[u];
  }

  double Run() {
    const double whole = CostOf(cost_, seats_);
    least_ = 1e-12 * whole;
    double gained = 0;
    for (uint32_t round = 1; round <= kRounds && !control_.stopped(); ++round) {
      round_ = round;
      double in_round = 0;
      for (const uint32_t u : Border()) {
        if (moved_in_[u] == round_) continue;
        in_round += TryFrom(u);
        if (control_.stopped()) break;
      }
      gained += in_round;
      if (in_round < kWorthARound * whole) break;
    }
    return gained;
  }

 private:
  struct Move {
    double delta = std::numeric_limits<double>::infinity();
    uint32_t to = 0;
  };
  struct Near {  // what u exchanges with a place, if the stamp is of u's turn
    typename Cost::Weight weight{};
    uint32_t stamp = 0;
  };
  struct Entry {
    double delta;
    uint32_t vertex;
    bool operator<(const Entry& other) const {  // the least on top
      return std::pair(delta, vertex) > std::pair(other.delta, other.vertex);
    }
  };

  std::vector<uint32_t> Border() {
    std::vector<uint32_t> border;
    for (uint32_t u = 0; u < seats_.size(); ++u) {
      for (size_t e = links_.begin[u]; e < links_.begin[u + 1]; ++e) {
        if (seats_[links_.neighbours[e]] == seats_[u]) continue;
        border.push_back(u);
        break;
      }
    }
    Shuffle(border, random_);
    return border;
  }

  // The best place with room among those of u's partners.
  Move Best(uint32_t u) {
    const uint32_t from = seats_[u];
    near_.clear();
    ++stamp_;
    for (size_t e = links_.begin[u]; e < links_.begin[u + 1]; ++e) {
      Near& near = at_place_[seats_[links_.neighbours[e]]];
      if (near.stamp != stamp_) {
        near = {cost_.WeightOf(e), stamp_};
        near_.push_back(seats_[links_.neighbours[e]]);
      } else {
        near.weight += cost_.WeightOf(e);
      }
    }
    Move best;
    if (near_.size() == 1 && near_[0] == from) return best;
    const auto sum = [&](uint32_t place) {
      double cost = 0;
      for (const uint32_t at : near_) cost += cost_.Of(at_place_[at].weight, place, at);
      return cost;
    };
    double now = -1;
    for (const uint32_t to : near_) {
      if (to == from || room_[to] < links_.vertex_sizes[u]) continue;
      if (now < 0) now = sum(from);
      const double delta = sum(to) - now + SelfDelta(cost_, u, from, to);
      if (delta < best.delta) best = {delta, to};
    }
    return best;
  }

  void Push(uint32_t u) {
    if (moved_in_[u] == round_) return;
    const Move move = Best(u);
    if (move.delta == std::numeric_limits<double>::infinity()) return;
    queue_.push_back({move.delta, u});
    std::push_heap(queue_.begin(), queue_.end());
  }

  void Apply(uint32_t u, uint32_t to) {
    room_[seats_[u]] += links_.vertex_sizes[u];
    room_[to] -= links_.vertex_sizes[u];
    seats_[u] = to;
  }

  double TryFrom(uint32_t seed) {
    queue_.clear();
    done_.clear();
    Push(seed);
    double now = 0, least = 0;
    size_t kept = 0;
    while (!queue_.empty() && done_.size() < kept + kFruitless) {
      std::pop_heap(queue_.begin(), queue_.end());
      const Entry entry = queue_.back();
      queue_.pop_back();
      const uint32_t u = entry.vertex;
      if (moved_in_[u] == round_) continue;
      const Move move = Best(u);
      if (move.delta == std::numeric_limits<double>::infinity()) continue;
      if (move.delta > entry.delta + least_) {  // out of date
        queue_.push_back({move.delta, u});
        std::push_heap(queue_.begin(), queue_.end());
        continue;
      }
      done_.emplace_back(u, seats_[u]);
      Apply(u, move.to);
      moved_in_[u] = round_;
      now += move.delta;
      if (now < least - least_) {
        least = now;
        kept = done_.size();
      }
      for (size_t e = links_.begin[u]; e < links_.begin[u + 1]; ++e) Push(links_.neighbours[e]);
    }
    for (; done_.size() > kept; done_.pop_back()) Apply(done_.back().first, done_.back().second);
    return -least;
  }

  const Cost cost_;
  const WeightedGraph& links_;
  const SearchControl& control_;
  Seats& seats_;
  std::vector<int64_t> room_;                        // [place]
  std::vector<Near> at_place_;                       // [place] scratch
  std::vector<uint32_t> near_;                       // scratch
  std::vector<uint32_t> moved_in_;                   // [vertex] round
  std::vector<Entry> queue_;                         // a heap
  std::vector<std::pair<uint32_t, uint32_t>> done_;  // moves of a try: who, and from where
  Xoshiro random_;
  uint32_t round_ = 0;
  uint32_t stamp_ = 0;
  double least_ = 0;
};

constexpr double kProposals = 300;  // for each part
constexpr double kHot = 0.5;
constexpr uint32_t kMaxParts = 4096;

}  // namespace

double RefineOnAllLevels(const SparseProblem& problem, uint64_t seed, const Seats* other,
                         const SearchControl& control, Seats& seats) {
  Xoshiro random(seed);
  const auto places = static_cast<uint32_t>(problem.capacities.size());
  const auto largest =
      static_cast<uint32_t>(std::max<size_t>(2, seats.size() / places / kPiecesPerPlace));
  std::vector<uint64_t> keys(seats.size());
  for (uint32_t u = 0; u < seats.size(); ++u) {
    keys[u] = seats[u] * uint64_t{places} + (other == nullptr ? 0 : (*other)[u]);
  }
  std::vector<Level> levels;
  std::vector<Seats> seats_of = {seats};  // [level], the finest first
  for (uint32_t count = static_cast<uint32_t>(seats.size()); count > kMinPerPlace * places;) {
    if (control.stopped()) break;
    const SparseGraph& fine = levels.empty() ? problem.graph : levels.back().graph;
    Level level;
    level.coarse_of = MatchNeighbours(fine, keys, largest, random);
    const uint32_t coarse = CountOf(level.coarse_of);
    if (coarse > kWorthALevel * count) break;
    level.graph = Contract(fine, level.coarse_of, problem.has_self_distances);
    Seats coarse_seats(coarse);
    std::vector<uint64_t> coarse_keys(coarse);
    for (uint32_t v = 0; v < count; ++v) {
      coarse_seats[level.coarse_of[v]] = seats_of.back()[v];
      coarse_keys[level.coarse_of[v]] = keys[v];
    }
    keys = std::move(coarse_keys);
    seats_of.push_back(std::move(coarse_seats));
    levels.push_back(std::move(level));
    count = coarse;
  }
  double gained = 0;
  for (size_t level = levels.size() + 1; level-- > 0;) {
    const SparseGraph& graph = level == 0 ? problem.graph : levels[level - 1].graph;
    gained += MoveToBetterPlaces(problem, graph, random(), control, seats_of[level]);
    if (level == 0) break;
    const std::vector<uint32_t>& coarse_of = levels[level - 1].coarse_of;
    Seats& fine = seats_of[level - 1];
    for (uint32_t v = 0; v < fine.size(); ++v) fine[v] = seats_of[level][coarse_of[v]];
  }
  seats = std::move(seats_of[0]);
  return gained;
}

double MoveToBetterPlaces(const SparseProblem& problem, const SparseGraph& graph, uint64_t seed,
                          const SearchControl& control, Seats& seats) {
  return VisitCost(*problem.distances, graph, [&](const auto& cost) {
    return MoveSearch(cost, problem, seed, control, seats).Run();
  });
}

void ArrangeParts(const SparseProblem& problem, uint64_t seed, const SearchControl& control,
                  Seats& seats) {
  const auto places = static_cast<uint32_t>(problem.capacities.size());
  if (problem.groups.exact || places > kMaxParts) return;
  if (std::set(problem.capacities.begin(), problem.capacities.end()).size() > 1) return;
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
  Seats arranged = Numbers(count);
  const double before = CostOf(parts, arranged);
  Seats annealed = arranged;
  SwapUntilLocalOptimum(parts, {seed}, control, arranged);
  Anneal(parts, {seed, kHot, kProposals}, control, annealed);
  SwapUntilLocalOptimum(parts, {seed}, control, annealed);
  if (CostOf(parts, annealed) < CostOf(parts, arranged)) arranged = annealed;
  if (!(CostOf(parts, arranged) < before)) return;
  for (uint32_t& seat : seats) seat = arranged[seat];
}

std::vector<uint32_t> MatchNeighbours(const SparseGraph& graph, absl::Span<const uint64_t> keys,
                                      uint32_t largest, Xoshiro& random) {
  const WeightedGraph& links = graph.links;
  const uint32_t count = graph.vertex_count();
  std::vector<uint32_t> order = Numbers(count), mate(count, kNoRank);
  Shuffle(order, random);
  for (const uint32_t u : order) {
    if (mate[u] != kNoRank) continue;
    double best = 0;
    uint32_t with = u;
    for (size_t e = links.begin[u]; e < links.begin[u + 1]; ++e) {
      const uint32_t v = links.neighbours[e];
      if (mate[v] != kNoRank || keys[v] != keys[u]) continue;
      if (links.vertex_sizes[u] + links.vertex_sizes[v] > largest) continue;
      const double rating = links.weights[e] * links.weights[e] / links.vertex_sizes[v];
      if (rating > best) {
        best = rating;
        with = v;
      }
    }
    mate[u] = with;
    mate[with] = u;
  }
  std::vector<uint32_t> coarse_of(count);
  uint32_t next = 0;
  for (uint32_t u = 0; u < count; ++u) {
    coarse_of[u] = mate[u] >= u ? next++ : coarse_of[mate[u]];
  }
  return coarse_of;
}

SparseGraph Contract(const SparseGraph& graph, const std::vector<uint32_t>& coarse_of,
                     bool keep_self) {
  const WeightedGraph& links = graph.links;
  const bool directed = !graph.out.empty();
  const uint32_t count = CountOf(coarse_of);
  const std::vector<uint32_t> members = NumbersByKey(coarse_of, count);
  auto member = members.begin();
  SparseGraph coarse;
  coarse.links.begin.assign(1, 0);
  coarse.links.begin.reserve(count + 1);
  coarse.links.vertex_sizes.assign(count, 0);
  if (keep_self) coarse.self.assign(count, 0.0);
  std::vector<size_t> place_in_row(count, 0);
  for (uint32_t c = 0; c < count; ++c) {
    const size_t row = coarse.links.neighbours.size();
    for (; member != members.end() && coarse_of[*member] == c; ++member) {
      const uint32_t v = *member;
      coarse.links.vertex_sizes[c] += links.vertex_sizes[v];
      if (keep_self && !graph.self.empty()) coarse.self[c] += graph.self[v];
      for (size_t e = links.begin[v]; e < links.begin[v + 1]; ++e) {
        const uint32_t to = coarse_of[links.neighbours[e]];
        if (to == c) {
          if (keep_self) coarse.self[c] += 0.5 * links.weights[e];  // both ends come by
          continue;
        }
        size_t& at = place_in_row[to];
        if (at < row || at >= coarse.links.neighbours.size() || coarse.links.neighbours[at] != to) {
          at = coarse.links.neighbours.size();
          coarse.links.neighbours.push_back(to);
          coarse.links.weights.push_back(0);
          if (directed) {
            coarse.out.push_back(0);
            coarse.in.push_back(0);
          }
        }
        coarse.links.weights[at] += links.weights[e];
        if (directed) {
          coarse.out[at] += graph.out[e];
          coarse.in[at] += graph.in[e];
        }
      }
    }
    coarse.links.begin.push_back(coarse.links.neighbours.size());
  }
  return coarse;
}

}  // namespace coppice
