// Recursive bisection mapping (Hoefler and Snir, "Generic topology mapping strategies for
// large-scale parallel architectures", ICS 2011, section 3.2, algorithm 2): heavy clusters of the
// pattern land on strong clusters of the fabric.
//
//     H with capacities C         G
//         /        \            /   \          cut along few gigabits ... few bytes
//       C1          C2   <->  G1     G2        |G1| = sum of C1, |G2| = sum of C2, exactly
//      /  \        /  \      /  \   /  \       until one place is left, which takes what is left
//
// Both graphs are cut by METIS and brought to the exact sizes by moving the vertex that is least
// attached (3.2, last paragraph). Capacities are the weights of H's edges, so that parallel and
// fast links are kept together.
//
// Departures. Switches follow the side that METIS puts them on, instead of staying on both, so that
// a level costs O(E) for H and not O(E) for each part. Which half of G goes to which half of H is
// free where both halves take as many ranks: the order that costs less against the ranks placed so
// far is not looked for, as in the paper. Ranks that the slots have room for beyond the pattern's
// are padded with vertices without edges. Where H falls apart into places only, they are halved in
// their order.
//
// O((E_G + E_H) log P), METIS's linear time at each of the levels. Deterministic for a seed
// (search/metis_partition.h).
#include "daemon/mapping/algorithm/recursive.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/link_traffic.h"
#include "daemon/mapping/search/partition/metis_partition.h"
#include "daemon/mapping/search/partition/partition_cut.h"

namespace coppice {
namespace {

// The fabric's cables with their capacities; vertices that are no place weigh nothing.
WeightedGraph GraphOfFabric(const MappingProblem& problem, std::vector<uint32_t>& place_of_vertex) {
  const Fabric& fabric = *problem.snapshot->fabric;
  const Places& places = *problem.places;
  const std::vector<double> capacities = ChannelCapacities(problem);
  const uint32_t switches = fabric.switch_count();
  WeightedGraph graph;
  graph.begin.assign(1, 0);
  graph.vertex_sizes.assign(switches, 0);
  place_of_vertex.assign(switches, 0);
  std::vector<uint32_t> place_of_endpoint(fabric.endpoint_count(), places.count());
  for (uint32_t p = 0; p < places.count(); ++p) {
    place_of_endpoint[places.endpoint(PlaceIndex(p)).value()] = p;
  }
  const auto add_row = [&](VertexIndex v) {
    for (const Channel& channel : fabric.channels(v)) {
      uint32_t to = channel.to.value();
      if (!fabric.IsSwitch(channel.to)) {
        const uint32_t place = place_of_endpoint[fabric.AsEndpoint(channel.to).value()];
        if (place == places.count()) continue;
        to = switches + place;
      }
      if (channel.to == v) continue;
      // Load lowers the two directions unequally; METIS takes one weight for both.
      const double capacity =
          (capacities[channel.index.value()] + capacities[Fabric::Reverse(channel.index).value()]) /
          2;
      const auto row = graph.neighbours.begin() + static_cast<std::ptrdiff_t>(graph.begin.back());
      const auto parallel = std::find(row, graph.neighbours.end(), to);
      if (parallel != graph.neighbours.end()) {
        graph.weights[static_cast<size_t>(parallel - graph.neighbours.begin())] += capacity;
        continue;
      }
      graph.neighbours.push_back(to);
      graph.weights.push_back(capacity);
    }
    graph.begin.push_back(graph.neighbours.size());
  };
  for (uint32_t s = 0; s < switches; ++s) add_row(VertexIndex(s));
  for (uint32_t p = 0; p < places.count(); ++p) {
    add_row(fabric.Vertex(places.endpoint(PlaceIndex(p))));
    graph.vertex_sizes.push_back(places.capacity(PlaceIndex(p)));
    place_of_vertex.push_back(p);
  }
  return graph;
}

uint32_t SizeOf(const WeightedGraph& graph) {
  return std::accumulate(graph.vertex_sizes.begin(), graph.vertex_sizes.end(), uint32_t{0});
}

class RecursiveMapper {
 public:
  RecursiveMapper(const AlgorithmOptions& options, const SearchControl& control, Mapping& mapping)
      : seed_(options.seed), control_(control), mapping_(mapping) {}

  // `places` and `ranks`: what the vertices of the graphs stand for. |pattern| = SizeOf(fabric).
  absl::Status Map(const WeightedGraph& fabric, const std::vector<uint32_t>& places,
                   const WeightedGraph& pattern, const std::vector<uint32_t>& ranks) {
    const auto sized = [](uint32_t size) { return size > 0; };
    const auto place_count =
        std::count_if(fabric.vertex_sizes.begin(), fabric.vertex_sizes.end(), sized);
    if (place_count <= 1 || control_.stopped()) {
      Fill(fabric, places, ranks);
      return absl::OkStatus();
    }
    const absl::StatusOr<std::vector<uint32_t>> halved = Halve(fabric);
    if (absl::IsCancelled(halved.status())) {
      Fill(fabric, places, ranks);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(halved.status());
    const std::vector<uint32_t>& side_of_vertex = *halved;
    std::vector<uint32_t> kept[2];
    WeightedGraph halves[2];
    std::vector<uint32_t> sizes;
    for (uint32_t side = 0; side < 2; ++side) {
      halves[side] = Subgraph(fabric, side_of_vertex, side, kept[side]);
      sizes.push_back(SizeOf(halves[side]));
      for (uint32_t& v : kept[side]) v = places[v];
    }
    absl::StatusOr<std::vector<uint32_t>> cut = Cut(pattern, sizes);
    // Without the time for it, in the order of their numbers.
    if (absl::IsCancelled(cut.status())) cut = InOrder(pattern, sizes);
    RETURN_IF_ERROR(cut.status());
    std::vector<uint32_t>& side_of_rank = *cut;
    BalanceParts(pattern, sizes, side_of_rank, control_);
    for (uint32_t side = 0; side < 2; ++side) {
      std::vector<uint32_t> mine;
      const WeightedGraph part = Subgraph(pattern, side_of_rank, side, mine);
      for (uint32_t& r : mine) r = ranks[r];
      RETURN_IF_ERROR(Map(halves[side], kept[side], part, mine));
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<std::vector<uint32_t>> Cut(const WeightedGraph& graph,
                                            const std::vector<uint32_t>& sizes) {
    if (graph.neighbours.empty()) return InOrder(graph, sizes);  // nothing to cut along
    return Partition(graph, sizes, {.seed = seed_, .method = PartitionMethod::kRecursiveBisection},
                     control_);
  }

  static std::vector<uint32_t> InOrder(const WeightedGraph& graph,
                                       const std::vector<uint32_t>& sizes) {
    return PartsInOrder(graph, std::vector<uint64_t>(sizes.begin(), sizes.end()));
  }

  // Near equal halves of the slots, a place at least in each.
  absl::StatusOr<std::vector<uint32_t>> Halve(const WeightedGraph& fabric) {
    const uint32_t size = SizeOf(fabric);
    const std::vector<uint32_t> sizes = {size - size / 2, size / 2};
    ASSIGN_OR_RETURN(std::vector<uint32_t> sides, Cut(fabric, sizes));
    BalanceParts(fabric, sizes, sides, control_);
    uint32_t on_side[2] = {0, 0};
    for (uint32_t v = 0; v < sides.size(); ++v) on_side[sides[v]] += fabric.vertex_sizes[v];
    const uint32_t empty = on_side[0] == 0 ? 0 : 1;
    if (on_side[empty] == 0) {
      const auto first = std::find_if(fabric.vertex_sizes.begin(), fabric.vertex_sizes.end(),
                                      [](uint32_t s) { return s > 0; });
      sides[static_cast<size_t>(first - fabric.vertex_sizes.begin())] = empty;
    }
    return sides;
  }

  void Fill(const WeightedGraph& fabric, const std::vector<uint32_t>& places,
            const std::vector<uint32_t>& ranks) {
    size_t next = 0;
    for (uint32_t v = 0; v < fabric.vertex_count(); ++v) {
      for (uint32_t i = 0; i < fabric.vertex_sizes[v]; ++i, ++next) {
        if (ranks[next] < mapping_.size()) mapping_[ranks[next]] = PlaceIndex(places[v]);
      }
    }
  }

  const uint64_t seed_;
  const SearchControl& control_;
  Mapping& mapping_;
};

absl::StatusOr<Mapped> RunRecursive(const MappingProblem& problem, const Mapping&,
                                    const AlgorithmOptions& options, const SearchControl& control) {
  if (problem.snapshot == nullptr || !problem.places->has_endpoints()) {
    return absl::FailedPreconditionError(
        "recursive cuts the fabric in two and there is none: name one, or choose multisection");
  }
  std::vector<uint32_t> place_of_vertex;
  const WeightedGraph fabric = GraphOfFabric(problem, place_of_vertex);
  WeightedGraph pattern = GraphOf(*problem.pattern);
  pattern.vertex_sizes.resize(problem.places->slot_count(), 1);
  pattern.begin.resize(size_t{problem.places->slot_count()} + 1, pattern.begin.back());
  std::vector<uint32_t> ranks(problem.places->slot_count());
  std::iota(ranks.begin(), ranks.end(), 0);
  Mapped mapped;
  mapped.mapping.resize(problem.rank_count());
  RETURN_IF_ERROR(RecursiveMapper(options, control, mapped.mapping)
                      .Map(fabric, place_of_vertex, pattern, ranks));
  return mapped;
}

}  // namespace

const MappingAlgorithm& RecursiveAlgorithm() {
  static const auto* const entry =
      new MappingAlgorithm{"recursive", "Hoefler 2011, algorithm 2", false, {}, RunRecursive};
  return *entry;
}

}  // namespace coppice
