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
// attached (3.2, last paragraph). Capacities are the weights of H's edges.
//
// Departures. Switches follow the side that METIS puts them on, instead of staying on both: a level
// costs O(E) for H. Slots beyond the ranks get vertices without edges. Where H falls apart into
// places only, they are halved in their order. O((E_G + E_H) log P).
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/link_traffic.h"
#include "daemon/mapping/search/groups/metis_partition.h"
#include "daemon/mapping/search/partition/partition.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_search.h"

namespace coppice {
namespace {

// The fabric's cables with their capacities, over switches, which weigh nothing, and then places:
// `vertices` names these.
GraphPart GraphOfFabric(const MappingProblem& problem) {
  const Fabric& fabric = *problem.snapshot->fabric;
  const Places& places = *problem.places;
  const std::vector<double> capacities = ChannelCapacities(problem);
  const uint32_t switches = fabric.switch_count();
  GraphPart part{std::vector<uint32_t>(switches, 0), {}};
  WeightedGraph& graph = part.graph;
  graph.begin.assign(1, 0);
  graph.vertex_sizes.assign(switches, 0);
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
    part.vertices.push_back(p);
  }
  return part;
}

uint32_t SizeOf(const WeightedGraph& graph) {
  return std::accumulate(graph.vertex_sizes.begin(), graph.vertex_sizes.end(), uint32_t{0});
}

class RecursiveMapper {
 public:
  RecursiveMapper(uint64_t seed, const SearchControl& control, Mapping& mapping)
      : seed_(seed), control_(control), mapping_(mapping) {}

  // The places of `fabric` take all ranks of `pattern`, and no more.
  absl::Status Map(const GraphPart& fabric, const GraphPart& pattern) {
    const auto places = absl::c_count_if(fabric.graph.vertex_sizes, IsPlace);
    if (places <= 1 || control_.stopped()) {
      Fill(fabric, pattern.vertices);
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const std::vector<uint32_t> side_of_vertex, Halve(fabric.graph));
    std::vector<GraphPart> halves = SplitGraph(fabric.graph, side_of_vertex, 2);
    ASSIGN_OR_RETURN(const std::vector<uint32_t> side_of_rank,
                     Cut(pattern.graph, {SizeOf(halves[0].graph), SizeOf(halves[1].graph)}));
    std::vector<GraphPart> parts = SplitGraph(pattern.graph, side_of_rank, 2);
    for (const uint32_t side : {0, 1}) {
      for (uint32_t& v : halves[side].vertices) v = fabric.vertices[v];
      for (uint32_t& r : parts[side].vertices) r = pattern.vertices[r];
      RETURN_IF_ERROR(Map(halves[side], parts[side]));
    }
    return absl::OkStatus();
  }

 private:
  static bool IsPlace(uint32_t size) { return size > 0; }

  absl::StatusOr<std::vector<uint32_t>> Cut(const WeightedGraph& graph,
                                            const std::vector<uint32_t>& sizes) const {
    return CutIntoSizes(graph, sizes,
                        {.seed = seed_, .method = PartitionMethod::kRecursiveBisection}, control_);
  }

  // Near equal halves of the slots, a place at least in each.
  absl::StatusOr<std::vector<uint32_t>> Halve(const WeightedGraph& fabric) const {
    const uint32_t size = SizeOf(fabric);
    ASSIGN_OR_RETURN(std::vector<uint32_t> sides, Cut(fabric, {size - size / 2, size / 2}));
    uint32_t on_side[2] = {0, 0};
    for (uint32_t v = 0; v < sides.size(); ++v) on_side[sides[v]] += fabric.vertex_sizes[v];
    const uint32_t empty = on_side[0] == 0 ? 0 : 1;
    if (on_side[empty] == 0) {
      const auto first = absl::c_find_if(fabric.vertex_sizes, IsPlace);
      sides[static_cast<size_t>(first - fabric.vertex_sizes.begin())] = empty;
    }
    return sides;
  }

  void Fill(const GraphPart& fabric, const std::vector<uint32_t>& ranks) {
    size_t next = 0;
    for (uint32_t v = 0; v < fabric.graph.vertex_count(); ++v) {
      for (uint32_t i = 0; i < fabric.graph.vertex_sizes[v]; ++i, ++next) {
        if (ranks[next] < mapping_.size()) mapping_[ranks[next]] = PlaceIndex(fabric.vertices[v]);
      }
    }
  }

  const uint64_t seed_;
  const SearchControl& control_;
  Mapping& mapping_;
};

}  // namespace

absl::StatusOr<Mapped> RunRecursive(const MappingProblem& problem, const Mapping&,
                                    const MethodOptions& options, const SearchControl& control) {
  const uint32_t slots = problem.places->slot_count();
  GraphPart pattern{Numbers(slots), GraphOf(*problem.pattern)};
  pattern.graph.vertex_sizes.resize(slots, 1);
  pattern.graph.begin.resize(size_t{slots} + 1, pattern.graph.begin.back());
  Mapped mapped;
  mapped.mapping.resize(problem.rank_count());
  RETURN_IF_ERROR(
      RecursiveMapper(options.seed, control, mapped.mapping).Map(GraphOfFabric(problem), pattern));
  return mapped;
}

absl::StatusOr<Mapped> RunMultisection(const MappingProblem& problem, const Mapping&,
                                       const MethodOptions& options, const SearchControl& control) {
  ASSIGN_OR_RETURN(const SparsePointer sparse, MakeSparseProblem(problem, control));
  const MultisectionOptions multisection = {.seed = options.seed,
                                            .pack = options.Is("pack"),
                                            .tries = options.Count("tries"),
                                            .cycles = options.Count("cycles"),
                                            .combinations = options.Count("combinations")};
  ASSIGN_OR_RETURN(Seats seats,
                   Multisect(sparse->graph.links, sparse->groups, multisection, control));
  if (multisection.cycles > 0) {
    ArrangeParts(*sparse, options.seed, control, seats);
    RefineOnAllLevels(*sparse, options.seed, nullptr, control, seats);
  }
  return Mapped{MappingOf(seats),
                absl::StrFormat("cut along %d groups of places%s",
                                sparse->groups.nodes.size() - sparse->groups.order.size(),
                                sparse->groups.exact ? "" : ", which only approach the distances")};
}

// Multicore nodes (Hoefler and Snir, ICS 2011, sections 3.4 and 4.2): where a host takes p ranks,
// the pattern is cut into P/p parts of p ranks, and a pattern of the parts is mapped with one part
// to a host.
//
//     G:  0-1=2-3      parts {0 1} {2 3}      G':  A = B      greedy, recursive or rcm
//         |   |   |     few bytes cut
//         5=4-6-7
//
// Departures: capacities may differ. The parts get the capacities of the largest places that hold
// all ranks, the last one what is left; the second method sees only that a place takes one part,
// and where a part lands on a smaller place, the ranks that are least attached move on to places
// that have room.
//
// O(E_G) for METIS and what the second method takes for P/p ranks.

namespace {

std::vector<uint32_t> CapacitiesOf(const Places& places) {
  std::vector<uint32_t> capacities;
  for (uint32_t p = 0; p < places.count(); ++p) {
    capacities.push_back(places.capacity(PlaceIndex(p)));
  }
  return capacities;
}

// Sizes of the parts, largest first.
std::vector<uint32_t> SizesOfParts(const MappingProblem& problem) {
  std::vector<uint32_t> sizes = CapacitiesOf(*problem.places);
  std::sort(sizes.rbegin(), sizes.rend());
  uint32_t left = problem.rank_count();
  size_t count = 0;
  for (; left > 0; ++count) {
    sizes[count] = std::min(sizes[count], left);
    left -= sizes[count];
  }
  sizes.resize(count);
  return sizes;
}

// The same question with one part to a place.
absl::StatusOr<MappingProblem> ProblemOfParts(const MappingProblem& problem,
                                              const std::vector<uint32_t>& parts, uint32_t count) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t r = 0; r < problem.rank_count(); ++r) {
    for (const Exchange& exchange : problem.pattern->exchanges(r)) {
      const uint32_t from = parts[r], to = parts[exchange.peer];
      if (from != to && exchange.out_bytes > 0) entries.push_back({from, to, exchange.out_bytes});
    }
  }
  MappingProblem quotient = problem;
  ASSIGN_OR_RETURN(quotient.pattern, Pattern::Make(count, std::move(entries)));
  std::vector<EndpointIndex> endpoints;
  for (uint32_t p = 0; p < problem.places->count(); ++p) {
    endpoints.push_back(problem.places->endpoint(PlaceIndex(p)));
  }
  ASSIGN_OR_RETURN(quotient.places, Places::OfEndpoints(*problem.snapshot->fabric, endpoints, 1));
  return quotient;
}

}  // namespace

absl::StatusOr<Mapped> RunMulticore(const MappingProblem& problem, const Mapping&,
                                    const MethodOptions& options, const SearchControl& control) {
  const WeightedGraph graph = GraphOf(*problem.pattern);
  const std::vector<uint32_t> sizes = SizesOfParts(problem);
  std::vector<uint32_t> parts = Numbers(problem.rank_count());
  if (sizes.size() < parts.size()) {
    ASSIGN_OR_RETURN(parts, CutIntoSizes(graph, sizes, {.seed = options.seed}, control));
  }
  ASSIGN_OR_RETURN(const MappingProblem quotient,
                   ProblemOfParts(problem, parts, static_cast<uint32_t>(sizes.size())));
  const char* const then = std::array{"greedy", "recursive", "rcm"}[options.Count("then") - 1];
  ASSIGN_OR_RETURN(const MappingAlgorithm* const method, FindMappingAlgorithm(then));
  ASSIGN_OR_RETURN(
      const Mapped of_parts,
      method->Run(quotient, quotient.present(), {options.seed, options.threads, {}}, control));
  std::vector<uint32_t> place_of;
  for (const uint32_t part : parts) place_of.push_back(of_parts.mapping[part].value());
  FitParts(graph, CapacitiesOf(*problem.places), place_of, control);
  return Mapped{MappingOf(place_of), absl::StrFormat("%d parts, mapped by %s", sizes.size(), then)};
}

}  // namespace coppice
