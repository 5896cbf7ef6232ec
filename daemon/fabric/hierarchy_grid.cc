// Grids: the switches that agree in all but the first d coordinates are one group of level d.
//
//     d = 1: lines along x      d = 2: planes       d = 3: blocks, ...
//        o-o-o-o                 o-o-o-o
//                                o-o-o-o
//
// Taken if nine switches in ten state a position on one and the same grid, each another one. The
// rest, a management switch or a replaced one, are groups of their own.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "daemon/fabric/hierarchy.h"

namespace coppice {
namespace {

// Partitions by the positions of switches, [switch] coordinates, empty: none; shape is [component],
// empty: no grid. A grid of fewer dimensions than another repeats its coarsest level.
SwitchPartitions PartitionByPositions(const Fabric& fabric,
                                      const std::vector<std::vector<int32_t>>& positions,
                                      std::vector<std::string> shape) {
  SwitchPartitions result;
  for (const std::string& word : shape) result.fits.push_back(!word.empty());
  result.shape = std::move(shape);
  size_t dimensions = 0;
  for (const std::vector<int32_t>& at : positions) dimensions = std::max(dimensions, at.size());
  for (size_t d = 1; d < dimensions; ++d) {
    std::map<std::pair<uint32_t, std::vector<int32_t>>, uint32_t> lowest;
    SwitchPartition partition(fabric.switch_count());
    for (uint32_t s = 0; s < partition.size(); ++s) {
      const std::vector<int32_t>& at = positions[s];
      partition[s] = s;
      if (at.empty()) continue;
      const auto first = at.begin() + static_cast<std::ptrdiff_t>(std::min(d, at.size() - 1));
      const uint32_t component = fabric.component(VertexIndex(s));
      partition[s] = lowest.try_emplace({component, {first, at.end()}}, s).first->second;
    }
    result.levels.push_back(std::move(partition));
  }
  return result;
}

// Grids by their cables alone: which switches are in one line, plane or block of a torus, mesh or
// hypercube whose switches are called anyhow.
//
// A grid is the Cartesian product of a path or ring for each dimension, and has one factorisation
// into such (W. Imrich, S. Klavzar, D. Rall, "Topics in Graph Theory", chapter 15): two cables of a
// switch are of different dimensions exactly if they are two sides of one square without diagonals,
// and opposite sides of a square are of one dimension.
//
//      a---w      va and vb span the one square v a w b: va and bw are of one dimension, vb and aw
//      |   |      of another. c, too, is joined to v, but to no second neighbour of a: va and vc
//  c---v---b      are of one dimension.
//
// So cables fall into classes. Where those of one class are taken away, what hangs together has one
// coordinate in its dimension; the classes are a grid's exactly if the coordinates are numbers of a
// path or ring and all positions are taken once, each with all its cables. That is checked, so that
// a torus that lacks a cable is none.
//
// A ring of four is the product of two paths of two, so cables cannot tell a torus of 4 x 4 from a
// hypercube of 16 switches. Paths of two are taken together by twos where the other dimensions are
// rings or there are none: 4x4x4 and 6 dimensions of 2 are both called a torus of 4x4x4.

constexpr uint32_t kUnset = 0xffffffff;

// The switches of one component as a simple graph.
struct SwitchGraph {
  std::vector<uint32_t> switches;                 // ascending
  std::vector<std::vector<uint32_t>> neighbours;  // [vertex] ascending, each once
  std::vector<uint32_t> first_edge;  // [vertex] number of its first cable to a higher neighbour
  uint32_t edges = 0;

  bool AreJoined(uint32_t a, uint32_t b) const { return absl::c_binary_search(neighbours[a], b); }
  uint32_t Edge(uint32_t a, uint32_t b) const {
    if (a > b) std::swap(a, b);
    const auto higher = absl::c_upper_bound(neighbours[a], a);
    return first_edge[a] +
           static_cast<uint32_t>(std::lower_bound(higher, neighbours[a].end(), b) - higher);
  }
};

// One dimension: a path or a ring.
struct Dimension {
  uint32_t extent = 0;
  bool is_ring = false;
  std::vector<uint32_t> at;  // [vertex]
};

SwitchGraph GraphOf(const Fabric& fabric, std::vector<uint32_t> switches) {
  SwitchGraph graph;
  graph.switches = std::move(switches);
  absl::flat_hash_map<uint32_t, uint32_t> vertex;
  for (uint32_t v = 0; v < graph.switches.size(); ++v) vertex[graph.switches[v]] = v;
  for (uint32_t v = 0; v < graph.switches.size(); ++v) {
    std::vector<uint32_t>& row = graph.neighbours.emplace_back();
    for (const Channel& channel : fabric.switch_channels(SwitchIndex(graph.switches[v]))) {
      const uint32_t other = vertex.at(channel.to.value());
      if (other != v) row.push_back(other);
    }
    absl::c_sort(row);
    row.erase(std::unique(row.begin(), row.end()), row.end());
    graph.first_edge.push_back(graph.edges);
    graph.edges += static_cast<uint32_t>(row.end() - absl::c_upper_bound(row, v));
  }
  return graph;
}

// The corner of the square without diagonals that va and vb are two sides of; kUnset: there is
// none. nullopt: there are two, as no grid has them.
std::optional<uint32_t> FourthCorner(const SwitchGraph& graph, uint32_t v, uint32_t a, uint32_t b) {
  if (graph.AreJoined(a, b)) return kUnset;
  uint32_t corner = kUnset;
  for (const uint32_t w : graph.neighbours[a]) {
    if (w == v || !graph.AreJoined(b, w) || graph.AreJoined(v, w)) continue;
    if (corner != kUnset) return std::nullopt;
    corner = w;
  }
  return corner;
}

// The class of each cable, as one of its cables; empty: no grid. O(vertices * degree^3 * log).
std::vector<uint32_t> ClassesOfEdges(const SwitchGraph& graph) {
  DisjointSets sets(graph.edges);
  for (uint32_t v = 0; v < graph.neighbours.size(); ++v) {
    const std::vector<uint32_t>& row = graph.neighbours[v];
    for (size_t i = 0; i < row.size(); ++i) {
      for (size_t j = i + 1; j < row.size(); ++j) {
        const std::optional<uint32_t> corner = FourthCorner(graph, v, row[i], row[j]);
        if (!corner) return {};
        if (*corner == kUnset) {
          sets.Unite(graph.Edge(v, row[i]), graph.Edge(v, row[j]));
        } else {
          sets.Unite(graph.Edge(v, row[i]), graph.Edge(row[j], *corner));
          sets.Unite(graph.Edge(v, row[j]), graph.Edge(row[i], *corner));
        }
      }
    }
  }
  std::vector<uint32_t> classes(graph.edges);
  for (uint32_t e = 0; e < graph.edges; ++e) classes[e] = sets.Find(e);
  return classes;
}

// Calls `each` with both ends and the number of every cable.
template <class Each>
void ForEachEdge(const SwitchGraph& graph, Each each) {
  for (uint32_t v = 0; v < graph.neighbours.size(); ++v) {
    for (const uint32_t w : graph.neighbours[v]) {
      if (w > v) each(v, w, graph.Edge(v, w));
    }
  }
}

// Numbers of the places of a path or ring, from an end, or from place 0; empty: it is neither.
std::vector<uint32_t> Numbered(const std::vector<std::vector<uint32_t>>& places, bool& is_ring) {
  uint32_t start = 0, ends = 0;
  for (uint32_t p = 0; p < places.size(); ++p) {
    if (places[p].empty() || places[p].size() > 2) return {};
    if (places[p].size() == 1 && ends++ == 0) start = p;
  }
  is_ring = ends == 0;
  std::vector<uint32_t> number(places.size(), kUnset);
  uint32_t count = 0;
  for (uint32_t p = start; p != kUnset;) {
    number[p] = count++;
    uint32_t next = kUnset;
    for (const uint32_t q : places[p]) {
      if (number[q] == kUnset) next = std::min(next, q);
    }
    p = next;
  }
  if (count != places.size()) return {};
  return number;
}

// The dimension of one class of cables; nullopt: it is none.
std::optional<Dimension> DimensionOf(const SwitchGraph& graph, const std::vector<uint32_t>& classes,
                                     uint32_t wanted) {
  const auto vertices = static_cast<uint32_t>(graph.neighbours.size());
  DisjointSets sets(vertices);
  ForEachEdge(graph, [&](uint32_t v, uint32_t w, uint32_t edge) {
    if (classes[edge] != wanted) sets.Unite(v, w);
  });
  std::vector<uint32_t> place(vertices, kUnset);
  std::vector<std::vector<uint32_t>> places;
  for (uint32_t v = 0; v < vertices; ++v) {
    const uint32_t root = sets.Find(v);  // not above v
    if (root == v) {
      place[v] = static_cast<uint32_t>(places.size());
      places.emplace_back();
    } else {
      place[v] = place[root];
    }
  }
  bool is_apart = true;
  ForEachEdge(graph, [&](uint32_t v, uint32_t w, uint32_t edge) {
    if (classes[edge] != wanted) return;
    is_apart = is_apart && place[v] != place[w];
    places[place[v]].push_back(place[w]);
    places[place[w]].push_back(place[v]);
  });
  for (std::vector<uint32_t>& row : places) {
    absl::c_sort(row);
    row.erase(std::unique(row.begin(), row.end()), row.end());
  }
  Dimension dimension;
  dimension.extent = static_cast<uint32_t>(places.size());
  const std::vector<uint32_t> number = Numbered(places, dimension.is_ring);
  if (!is_apart || number.empty()) return std::nullopt;
  for (const uint32_t p : place) dimension.at.push_back(number[p]);
  return dimension;
}

// Whether every position is taken once and every switch has a cable to each neighbour there: so
// many positions, and so many cables, of which each changes one coordinate by construction.
bool AreWhole(const SwitchGraph& graph, const std::vector<Dimension>& dimensions) {
  const uint64_t vertices = graph.neighbours.size();
  uint64_t positions = 1, edges = 0;
  for (const Dimension& d : dimensions) {
    if (positions > vertices) return false;
    positions *= d.extent;
    edges += vertices / d.extent * (d.is_ring ? d.extent : d.extent - 1);
  }
  if (positions != vertices || edges != graph.edges) return false;
  std::vector<bool> taken(vertices, false);
  for (uint64_t v = 0; v < vertices; ++v) {
    uint64_t position = 0;
    for (const Dimension& d : dimensions) position = position * d.extent + d.at[v];
    if (taken[position]) return false;
    taken[position] = true;
  }
  return true;
}

// Two paths of two as one ring of four.
Dimension Together(const Dimension& a, const Dimension& b) {
  constexpr uint32_t kNumber[2][2] = {{0, 1}, {3, 2}};
  Dimension ring{4, true, {}};
  for (size_t v = 0; v < a.at.size(); ++v) ring.at.push_back(kNumber[a.at[v]][b.at[v]]);
  return ring;
}

GridKind PairPathsOfTwo(std::vector<Dimension>& dimensions) {
  const auto is_two = [](const Dimension& d) { return d.extent == 2; };
  const auto twos = std::stable_partition(dimensions.begin(), dimensions.end(),
                                          [&](const Dimension& d) { return !is_two(d); });
  const bool all_rings =
      std::all_of(dimensions.begin(), twos, [](const auto& d) { return d.is_ring; });
  const auto count = dimensions.end() - twos;
  if (!all_rings) return GridKind::kMesh;  // also one that is open in some dimensions only
  if (twos == dimensions.begin() && count % 2 == 1) return GridKind::kHypercube;
  std::vector<Dimension> paired(dimensions.begin(), twos);
  for (auto two = twos; two != dimensions.end(); ++two) {
    if (two + 1 == dimensions.end()) {
      paired.push_back(*two);
    } else {
      paired.push_back(Together(*two, *(two + 1)));
      ++two;
    }
  }
  dimensions = std::move(paired);
  return GridKind::kTorus;
}

struct FoundGrid {
  GridKind kind = GridKind::kTorus;
  std::vector<Dimension> dimensions;  // the longest first
};

std::optional<FoundGrid> FindGridIn(const SwitchGraph& graph) {
  const auto vertices = static_cast<uint32_t>(graph.neighbours.size());
  if (vertices < 6) return std::nullopt;  // a ring of four is as well two leaves and two spines
  // A dimension has at least two places, and a switch at most two cables along each of three.
  const size_t most_cables = 2 * static_cast<size_t>(std::bit_width(vertices));
  for (const std::vector<uint32_t>& row : graph.neighbours) {
    if (row.empty() || row.size() > most_cables) return std::nullopt;
  }
  const std::vector<uint32_t> classes = ClassesOfEdges(graph);
  if (classes.empty()) return std::nullopt;
  FoundGrid grid;
  for (uint32_t e = 0; e < graph.edges; ++e) {
    if (classes[e] != e) continue;
    std::optional<Dimension> dimension = DimensionOf(graph, classes, e);
    if (!dimension) return std::nullopt;
    grid.dimensions.push_back(*std::move(dimension));
  }
  if (grid.dimensions.size() < 2 || !AreWhole(graph, grid.dimensions)) return std::nullopt;
  grid.kind = PairPathsOfTwo(grid.dimensions);
  absl::c_stable_sort(grid.dimensions,
                      [](const Dimension& a, const Dimension& b) { return a.extent > b.extent; });
  return grid;
}

}  // namespace

// On the grid that most positions are on.
SwitchPartitions PartitionByCoordinates(const Fabric& fabric) {
  using Grid = std::pair<GridKind, std::vector<int32_t>>;
  std::vector<std::optional<GridPosition>> stated;  // [switch]
  std::map<Grid, uint32_t> votes;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    stated.push_back(ParsePosition(fabric.switch_info(SwitchIndex(s)).description));
    if (stated[s]) ++votes[{stated[s]->kind, stated[s]->extents}];
  }
  const auto most = std::ranges::max_element(votes, {}, &std::pair<const Grid, uint32_t>::second);
  std::vector<std::vector<int32_t>> positions(fabric.switch_count());
  std::set<std::vector<int32_t>> seen;
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    if (!stated[s] || Grid(stated[s]->kind, stated[s]->extents) != most->first) continue;
    if (seen.insert(stated[s]->at).second) positions[s] = stated[s]->at;
  }
  std::vector<std::string> shape(fabric.component_count());
  if (seen.empty() || 10 * seen.size() < size_t{9} * fabric.switch_count()) {
    positions.assign(fabric.switch_count(), {});
  } else {
    shape.assign(fabric.component_count(), std::string(ToString(most->first.first)));
  }
  return PartitionByPositions(fabric, positions, std::move(shape));
}

SwitchPartitions PartitionByGridStructure(const Fabric& fabric) {
  std::vector<std::vector<uint32_t>> switches(fabric.component_count());
  // Grids have hosts everywhere; switches without any are above others.
  std::vector<bool> all_have_hosts(fabric.component_count(), true);
  for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
    const uint32_t component = fabric.component(VertexIndex(s));
    switches[component].push_back(s);
    if (fabric.endpoint_channels(SwitchIndex(s)).empty()) all_have_hosts[component] = false;
  }
  std::vector<std::vector<int32_t>> positions(fabric.switch_count());
  std::vector<std::string> shape(fabric.component_count());
  for (uint32_t c = 0; c < fabric.component_count(); ++c) {
    if (!all_have_hosts[c]) continue;
    const SwitchGraph graph = GraphOf(fabric, std::move(switches[c]));
    const std::optional<FoundGrid> grid = FindGridIn(graph);
    if (!grid) continue;
    shape[c] = std::string(ToString(grid->kind));
    for (const Dimension& dimension : grid->dimensions) {
      for (uint32_t v = 0; v < graph.switches.size(); ++v) {
        positions[graph.switches[v]].push_back(static_cast<int32_t>(dimension.at[v]));
      }
    }
  }
  return PartitionByPositions(fabric, positions, std::move(shape));
}

}  // namespace coppice
