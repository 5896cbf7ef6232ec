// Single linkage: a minimum spanning tree over the units (leaf switches, or places of a matrix),
// its edges joined from the shortest; lengths within a tenth of each other are one level.
//
//     a -1- b    c -1- d          level 1: {a b} {c d}
//        \--- 4 ---/              level 2: {a b c d}
//
// If all distances between the children of a group are then alike, the tree says what the distances
// say. If not (a torus is one group of places that are one link from somebody), the groups that
// the fabric's hierarchy knows come between, and what still has unlike distances is bisected by
// METIS, again and again, in the graph of who is nearest to whom.
//
// A spanning tree of n units asks for n^2 distances. Beyond kAllPairs units, some triples tell
// whether distances are those of nested groups at all:
//
//     d(a,c) <= max(d(a,b), d(b,c))     then everybody within t of one unit is its group at level t
//
// and if not, nobody asks for what is not found by walking a few cables (groups.h).
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/mapping/search/groups/groups.h"
#include "daemon/mapping/search/groups/metis_partition.h"
#include "daemon/mapping/search/random.h"

namespace coppice {
namespace {

using Labels = std::vector<uint32_t>;

constexpr double kAlike = 1.1;             // distances up to this factor apart are of one level
constexpr uint32_t kNearest = 48;          // edges of a unit in the graph that is bisected
constexpr size_t kHalvedByEnds = 32;       // units for which METIS is not worth its start
constexpr uint32_t kPairsLookedAt = 4096;  // pairs looked at where there are more
constexpr uint32_t kNearRing = 24;         // units that are looked at along the cables

struct Units {
  std::vector<uint32_t> seats;     // [unit] a place of it
  std::vector<uint32_t> of;        // [place]
  std::vector<uint32_t> capacity;  // [unit]
};

Units MakeUnits(const Places& places, const PlaceDistances& distances) {
  Units units;
  units.of.resize(places.count());
  const auto* classes = std::get_if<ClassDistances>(&distances.form());
  std::vector<uint32_t> unit_of_class(places.count(), places.count());
  for (uint32_t p = 0; p < places.count(); ++p) {
    uint32_t& unit = unit_of_class[classes == nullptr ? p : classes->from_classes[p]];
    if (unit == places.count()) {
      unit = static_cast<uint32_t>(units.seats.size());
      units.seats.push_back(p);
      units.capacity.push_back(0);
    }
    units.of[p] = unit;
    units.capacity[unit] += places.capacity(PlaceIndex(p));
  }
  return units;
}

struct Edge {
  double length;
  uint32_t a, b;
};

// Prim's algorithm on the full graph.
template <class Distance>
std::vector<Edge> SpanningTree(uint32_t count, const Distance& distance) {
  std::vector<Edge> nearest(count, {std::numeric_limits<double>::infinity(), 0, 0});
  std::vector<uint32_t> outside = Numbers(count);
  outside.erase(outside.begin());
  std::vector<Edge> tree;
  for (uint32_t last = 0; !outside.empty();) {
    size_t best = 0;
    for (size_t i = 0; i < outside.size(); ++i) {
      Edge& edge = nearest[outside[i]];
      const double length = distance(last, outside[i]);
      if (length < edge.length) edge = {length, last, outside[i]};
      if (edge.length < nearest[outside[best]].length) best = i;
    }
    last = outside[best];
    tree.push_back(nearest[last]);
    outside[best] = outside.back();
    outside.pop_back();
  }
  std::stable_sort(tree.begin(), tree.end(),
                   [](const Edge& x, const Edge& y) { return x.length < y.length; });
  return tree;
}

// Whether distances may be those of nested groups.
template <class Distance>
bool MayNest(uint32_t count, const Distance& distance) {
  Xoshiro random(count);
  for (uint32_t i = 0; i < kPairsLookedAt; ++i) {
    const uint32_t a = random.Below(count), b = random.Below(count), c = random.Below(count);
    if (a == b || b == c || a == c) continue;
    if (distance(a, c) > kAlike * std::max(distance(a, b), distance(b, c))) return false;
  }
  return true;
}

// As JoinAlong() of a spanning tree, where MayNest().
template <class Distance>
std::vector<Labels> NestedLevels(uint32_t count, const Distance& distance) {
  std::vector<double> lengths;
  for (uint32_t u = 1; u < count; ++u) lengths.push_back(distance(0, u));
  std::sort(lengths.begin(), lengths.end());
  std::vector<Labels> levels;
  for (size_t i = 0; i < lengths.size();) {
    const double most = lengths[i] * kAlike;
    while (i < lengths.size() && lengths[i] <= most) ++i;
    if (i == lengths.size()) break;
    Labels& labels = levels.emplace_back(count);
    std::vector<uint32_t> left = Numbers(count), others;
    while (!left.empty()) {
      const uint32_t first = left[0];
      others.clear();
      for (const uint32_t u : left) {
        if (u == first || distance(first, u) <= most) {
          labels[u] = first;
        } else {
          others.push_back(u);
        }
      }
      left.swap(others);
    }
  }
  std::reverse(levels.begin(), levels.end());
  return levels;
}

// [level][unit], the widest first; without the level at which all are one.
std::vector<Labels> JoinAlong(uint32_t count, const std::vector<Edge>& tree) {
  Labels root = Numbers(count);
  const auto find = [&](uint32_t u) {
    while (root[u] != u) u = root[u] = root[root[u]];
    return u;
  };
  std::vector<Labels> levels;
  for (size_t i = 0; i < tree.size();) {
    const double least = tree[i].length;
    for (; i < tree.size() && tree[i].length <= least * kAlike; ++i) {
      root[find(tree[i].a)] = find(tree[i].b);
    }
    if (i == tree.size()) break;
    Labels& labels = levels.emplace_back(count);
    for (uint32_t u = 0; u < count; ++u) labels[u] = find(u);
  }
  std::reverse(levels.begin(), levels.end());
  return levels;
}

uint32_t Distinct(Labels labels) {
  std::sort(labels.begin(), labels.end());
  return static_cast<uint32_t>(std::unique(labels.begin(), labels.end()) - labels.begin());
}

// Whether the pairs of `members` that `counts` (all, or some at random where these are many) are
// alike.
template <class Distance, class Counts>
bool Alike(const std::vector<uint32_t>& members, const Distance& distance, const Counts& counts) {
  const auto n = static_cast<uint32_t>(members.size());
  double least = std::numeric_limits<double>::infinity(), greatest = 0;
  const auto look = [&](uint32_t a, uint32_t b) {
    if (a == b || !counts(members[a], members[b])) return true;
    const double d = distance(members[a], members[b]);
    least = std::min(least, d);
    greatest = std::max(greatest, d);
    return greatest <= least * kAlike;
  };
  if (uint64_t{n} * n > 2 * kPairsLookedAt) {
    Xoshiro random(n);
    for (uint32_t i = 0; i < kPairsLookedAt; ++i) {
      if (!look(random.Below(n), random.Below(n))) return false;
    }
    return true;
  }
  for (uint32_t a = 0; a < n; ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      if (!look(a, b)) return false;
    }
  }
  return true;
}

// Who is near to whom, by both of a pair, in any order.
struct NearPair {
  uint32_t a, b;  // members
  double weight;
};

// Of what one pair says twice the lighter counts.
WeightedGraph GraphOfPairs(const std::vector<NearPair>& pairs, const std::vector<uint32_t>& members,
                           const Units& units) {
  std::vector<size_t> next(members.size() + 1, 0);
  for (const NearPair& pair : pairs) ++next[pair.a + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<std::pair<uint32_t, double>> row_of(pairs.size());
  for (const NearPair& pair : pairs) row_of[next[pair.a]++] = {pair.b, pair.weight};
  WeightedGraph graph;
  graph.begin.push_back(0);
  for (uint32_t a = 0; a < members.size(); ++a) {
    const auto begin = row_of.begin() + (a == 0 ? 0 : static_cast<ptrdiff_t>(next[a - 1]));
    const auto end = row_of.begin() + static_cast<ptrdiff_t>(next[a]);
    std::sort(begin, end);
    for (auto it = begin; it != end; ++it) {
      if (it != begin && it->first == std::prev(it)->first) continue;
      graph.neighbours.push_back(it->first);
      graph.weights.push_back(it->second);
    }
    graph.begin.push_back(graph.neighbours.size());
    graph.vertex_sizes.push_back(units.capacity[members[a]]);
  }
  return graph;
}

// What all bisections need.
struct Bisection {
  const Units& units;
  LeafRings* rings;  // null: all pairs are asked for
  const SearchControl& control;
};

// Who is nearest to whom, of all or of those near along the cables, weighted by how near. All
// bisections together ask for twice the distances of the first.
template <class Distance>
WeightedGraph NearGraph(const std::vector<uint32_t>& members, const Bisection& bisection,
                        const Distance& distance) {
  const auto n = static_cast<uint32_t>(members.size());
  std::vector<uint32_t> number(bisection.units.seats.size(), n), weights(number.size(), 0);
  for (uint32_t a = 0; a < n; ++a) {
    number[members[a]] = a;
    weights[members[a]] = 1;
  }
  std::vector<NearPair> pairs;
  std::vector<std::pair<uint32_t, double>> around;  // members, those after `a` first
  for (uint32_t a = 0; a < n; ++a) {
    around.clear();
    double least = std::numeric_limits<double>::infinity();
    const auto look = [&](uint32_t b) {
      if (a == b || b == n) return;
      around.emplace_back(b, distance(members[a], members[b]));
      least = std::min(least, around.back().second);
    };
    if (bisection.rings != nullptr) {
      for (const uint32_t u : bisection.rings->Around(members[a], weights, kNearRing)) {
        look(number[u]);
      }
    } else {
      for (uint32_t i = 1; i < n; ++i) look((a + i) % n);
    }
    uint32_t kept = 0;
    for (const auto& [b, d] : around) {
      if (d > least * 1.5 || kept >= kNearest) continue;
      const double weight = d > 0 ? 1 + 99 * least / d : 100;
      pairs.push_back({a, b, weight});
      pairs.push_back({b, a, weight});
      ++kept;
    }
  }
  return GraphOfPairs(pairs, members, bisection.units);
}

// [member] 0 or 1: METIS's halves of the graph of who is nearest to whom; empty if METIS declines.
template <class Distance>
std::vector<uint32_t> HalveByCut(const std::vector<uint32_t>& members, const Bisection& bisection,
                                 const Distance& distance) {
  const WeightedGraph graph = NearGraph(members, bisection, distance);
  const uint32_t total =
      std::accumulate(graph.vertex_sizes.begin(), graph.vertex_sizes.end(), uint32_t{0});
  const uint32_t halves[] = {(total + 1) / 2, std::max(1U, total / 2)};
  return Partition(graph, halves, {1, PartitionMethod::kRecursiveBisection, 0.001},
                   bisection.control)
      .value_or(std::vector<uint32_t>());
}

// [member] 0 or 1: those nearer to the one than to the other of two members far apart.
template <class Distance>
std::vector<uint32_t> HalveByEnds(const std::vector<uint32_t>& members, const Distance& distance) {
  const auto farthest = [&](uint32_t from) {
    return *std::max_element(members.begin(), members.end(), [&](uint32_t a, uint32_t b) {
      return distance(from, a) < distance(from, b);
    });
  };
  const uint32_t one = farthest(members[0]), other = farthest(one);
  std::vector<std::pair<double, size_t>> by_side;
  for (size_t i = 0; i < members.size(); ++i) {
    by_side.emplace_back(distance(one, members[i]) - distance(other, members[i]), i);
  }
  std::sort(by_side.begin(), by_side.end());
  std::vector<uint32_t> sides(members.size(), 0);
  for (size_t i = members.size() / 2; i < members.size(); ++i) sides[by_side[i].second] = 1;
  return sides;
}

// Halves `members` until what is left is alike; [depth] is labelled for every unit.
template <class Distance>
void Bisect(const std::vector<uint32_t>& members, size_t depth, const Bisection& bisection,
            const Distance& distance, std::vector<Labels>& levels) {
  const auto every_pair = [](uint32_t, uint32_t) { return true; };
  if (bisection.control.stopped() || members.size() < 4 || Alike(members, distance, every_pair)) {
    return;
  }
  const bool all_pairs = bisection.rings == nullptr && members.size() > kAllPairs;
  std::vector<uint32_t> parts;
  if (members.size() > kHalvedByEnds && !all_pairs) {
    parts = HalveByCut(members, bisection, distance);
  }
  std::vector<uint32_t> sides[2];
  for (size_t i = 0; i < parts.size(); ++i) sides[parts[i]].push_back(members[i]);
  if (sides[0].empty() || sides[1].empty()) {
    parts = HalveByEnds(members, distance);
    for (std::vector<uint32_t>& side : sides) side.clear();
    for (size_t i = 0; i < parts.size(); ++i) sides[parts[i]].push_back(members[i]);
  }
  if (levels.size() <= depth) {
    levels.resize(depth + 1, Labels(bisection.units.seats.size(), 0));
  }
  for (size_t i = 0; i < members.size(); ++i) levels[depth][members[i]] = parts[i];
  for (const std::vector<uint32_t>& side : sides) {
    Bisect(side, depth + 1, bisection, distance, levels);
  }
}

void AddHierarchy(const Places& places, const Units& units, const Hierarchy& hierarchy,
                  std::vector<Labels>& levels) {
  if (hierarchy.shape == "torus" || hierarchy.shape == "mesh" || hierarchy.shape == "hypercube") {
    return;  // lines and planes, where bisection finds blocks
  }
  for (const Hierarchy::Level& level : hierarchy.levels) {
    Labels labels;
    for (const uint32_t seat : units.seats) {
      labels.push_back(level.group[places.endpoint(PlaceIndex(seat)).value()]);
    }
    const uint32_t groups = Distinct(labels);
    if (groups > 1 && groups < units.seats.size()) levels.push_back(std::move(labels));
  }
  std::stable_sort(levels.begin(), levels.end(),
                   [](const Labels& a, const Labels& b) { return Distinct(a) < Distinct(b); });
}

std::vector<Labels> OfPlaces(const std::vector<Labels>& levels, const Units& units,
                             const PlaceDistances& distances) {
  std::vector<Labels> labels;
  for (const Labels& level : levels) {
    Labels& of_places = labels.emplace_back();
    for (const uint32_t unit : units.of) of_places.push_back(level[unit]);
  }
  labels.push_back(units.of);
  if (const auto* classes = std::get_if<ClassDistances>(&distances.form())) {
    labels.push_back(classes->bundles);
  }
  return labels;
}

// [unit] a number for each distinct pair of `outer` and `inner`, by first appearance.
Labels Refine(const Labels& outer, const Labels& inner) {
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> numbers;
  Labels refined;
  for (size_t u = 0; u < outer.size(); ++u) {
    refined.push_back(
        numbers.try_emplace({outer[u], inner[u]}, static_cast<uint32_t>(numbers.size()))
            .first->second);
  }
  return refined;
}

std::vector<std::vector<uint32_t>> Members(const Labels& labels) {
  std::vector<std::vector<uint32_t>> members;
  for (uint32_t u = 0; u < labels.size(); ++u) {
    if (labels[u] >= members.size()) members.resize(labels[u] + 1);
    members[labels[u]].push_back(u);
  }
  return members;
}

// Calls visit(level, members of a group of the level above, labels at the level) from the root
// down to the units; labels are refined, so that they nest.
template <class Visit>
void ForEachGroup(const std::vector<Labels>& levels, uint32_t units, const Visit& visit) {
  Labels above(units, 0);
  for (size_t level = 0; level <= levels.size(); ++level) {
    const Labels here = Refine(above, level == levels.size() ? Numbers(units) : levels[level]);
    for (const std::vector<uint32_t>& group : Members(above)) visit(level, group, here);
    above = here;
  }
}

template <class Distance>
bool SaysAll(const std::vector<Labels>& levels, uint32_t units, const Distance& distance) {
  bool exact = true;
  ForEachGroup(levels, units, [&](size_t, const std::vector<uint32_t>& group, const Labels& here) {
    exact =
        exact && Alike(group, distance, [&](uint32_t a, uint32_t b) { return here[a] != here[b]; });
  });
  return exact;
}

// The levels with bisections between them, where the children of a group are not alike.
template <class Distance>
std::vector<Labels> WithBisections(const std::vector<Labels>& levels, const Bisection& bisection,
                                   const Distance& distance) {
  const auto count = static_cast<uint32_t>(bisection.units.seats.size());
  std::vector<uint32_t> first(count, count);
  std::vector<std::vector<Labels>> between(levels.size() + 1);
  ForEachGroup(levels, count,
               [&](size_t level, const std::vector<uint32_t>& group, const Labels& here) {
                 std::vector<uint32_t> children;
                 for (const uint32_t u : group) {
                   if (first[here[u]] != count) continue;
                   first[here[u]] = u;
                   children.push_back(u);
                 }
                 std::vector<Labels> halves;
                 Bisect(children, 0, bisection, distance, halves);
                 std::vector<Labels>& into = between[level];
                 if (into.size() < halves.size()) into.resize(halves.size(), Labels(count, 0));
                 for (size_t depth = 0; depth < halves.size(); ++depth) {
                   for (const uint32_t u : group) into[depth][u] = halves[depth][first[here[u]]];
                 }
                 for (const uint32_t u : group) first[here[u]] = count;
               });
  std::vector<Labels> all;
  for (size_t level = 0; level <= levels.size(); ++level) {
    all.insert(all.end(), between[level].begin(), between[level].end());
    if (level < levels.size()) all.push_back(levels[level]);
  }
  return all;
}

}  // namespace

PlaceGroups LinkPlaces(const Places& places, const PlaceDistances& distances,
                       const Hierarchy* hierarchy, const Fabric* fabric,
                       const SearchControl& control) {
  const Units units = MakeUnits(places, distances);
  const auto count = static_cast<uint32_t>(units.seats.size());
  const bool many = count > kAllPairs;
  std::optional<LeafRings> rings;
  if (many && fabric != nullptr && places.has_endpoints() &&
      std::holds_alternative<ClassDistances>(distances.form())) {
    rings.emplace(*fabric, places);
    if (!rings->complete()) rings.reset();
  }
  std::vector<Labels> levels;
  const bool symmetric = distances.symmetric();
  bool exact = true;
  std::visit(
      [&](const auto& d) {
        const auto distance = [&](uint32_t a, uint32_t b) {
          const uint32_t from = units.seats[a], to = units.seats[b];
          return symmetric ? d(from, to) : 0.5 * (d(from, to) + d(to, from));
        };
        if (!many) {
          levels = JoinAlong(count, SpanningTree(count, distance));
        } else if (MayNest(count, distance)) {
          levels = NestedLevels(count, distance);
        }
        exact = SaysAll(levels, count, distance);
        if (exact) return;
        if (hierarchy != nullptr && places.has_endpoints()) {
          AddHierarchy(places, units, *hierarchy, levels);
        }
        levels = WithBisections(levels, {units, rings ? &*rings : nullptr, control}, distance);
      },
      distances.form());
  PlaceGroups groups = GroupsOfLabels(places, OfPlaces(levels, units, distances));
  groups.exact = exact;
  return groups;
}

}  // namespace coppice
