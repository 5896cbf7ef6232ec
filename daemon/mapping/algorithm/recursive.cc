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
// (search/groups/metis_partition.h).
#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/link_traffic.h"
#include "daemon/mapping/search/groups/metis_partition.h"
#include "daemon/mapping/search/partition/partition.h"
#include "daemon/mapping/search/sparse/sparse_multilevel.h"

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

namespace {

absl::StatusOr<Mapped> RunMultisection(const MappingProblem& problem, const Mapping&,
                                       const AlgorithmOptions& options,
                                       const SearchControl& control) {
  const MappingAlgorithm& self = MultisectionAlgorithm();
  const auto count = [&](absl::string_view name) {
    return static_cast<uint32_t>(ParameterOf(self, options, name));
  };
  ASSIGN_OR_RETURN(const std::shared_ptr<const SparseProblem> sparse,
                   MakeSparseProblem(problem, control));
  MultisectionOptions multisection;
  multisection.seed = options.seed;
  multisection.pack = count("pack") != 0;
  multisection.tries = count("tries");
  multisection.cycles = count("cycles");
  multisection.combinations = count("combinations");
  ASSIGN_OR_RETURN(Seats seats,
                   Multisect(sparse->graph.links, sparse->groups, multisection, control));
  if (count("cycles") > 0) {
    ArrangeParts(*sparse, options.seed, control, seats);
    RefineOnAllLevels(*sparse, options.seed, nullptr, control, seats);
  }
  return Mapped{MappingOf(seats),
                absl::StrFormat("cut along %d groups of places%s",
                                sparse->groups.nodes.size() - sparse->groups.order.size(),
                                sparse->groups.exact ? "" : ", which only approach the distances")};
}

}  // namespace

const MappingAlgorithm& MultisectionAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{
      "multisection",
      "Schulz and Traeff 2017, hierarchical multisection; Kirchbach, Schulz and Traeff 2020",
      false,
      {{"tries", 1, 1, 1000, "partitions of each cut by METIS, from which the best is taken"},
       {"cycles", 1, 0, 1000, "refinements of each on all levels of the pattern"},
       {"combinations", 0, 0, 100000, "combinations of two of a cut's partitions"},
       {"pack", 1, 0, 1, "1: fill as few groups as hold the ranks; 0: spread over all"}},
      RunMultisection};
  return *entry;
}

// Multicore nodes (Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel
// architectures", ICS 2011, sections 3.4 and 4.2): where a host takes p ranks, the pattern is cut
// into P/p parts of p ranks, and a pattern of the parts is mapped with one part to a host.
//
//     G:  0-1=2-3      parts {0 1} {2 3}      G':  A = B      greedy, recursive or rcm
//         |   |   |     few bytes cut
//         5=4-6-7
//
// METIS cuts k ways; parts are then brought to their sizes by moving the ranks that are least
// attached.
//
// Departures: capacities may differ. The parts get the capacities of the largest places that hold
// all ranks, the last one what is left; the second method sees only that a place takes one part,
// and where a part lands on a smaller place, the ranks that are least attached move on to places
// that have room.
//
// O(E_G) for METIS and what the second method takes for P/p ranks.

namespace {

// Sizes of the parts, largest first.
std::vector<uint32_t> SizesOfParts(const MappingProblem& problem) {
  const Places& places = *problem.places;
  std::vector<uint32_t> sizes;
  for (uint32_t p = 0; p < places.count(); ++p) sizes.push_back(places.capacity(PlaceIndex(p)));
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

absl::StatusOr<std::vector<uint32_t>> PartsOfRanks(const WeightedGraph& graph,
                                                   const std::vector<uint32_t>& sizes,
                                                   uint64_t seed, const SearchControl& control) {
  std::vector<uint32_t> parts(graph.vertex_count());
  if (sizes.size() == parts.size()) {
    std::iota(parts.begin(), parts.end(), 0);
    return parts;
  }
  absl::StatusOr<std::vector<uint32_t>> cut = Partition(graph, sizes, {.seed = seed}, control);
  if (absl::IsCancelled(cut.status())) {  // without the time for it
    return PartsInOrder(graph, std::vector<uint64_t>(sizes.begin(), sizes.end()));
  }
  RETURN_IF_ERROR(cut.status());
  BalanceParts(graph, sizes, *cut, control);
  return cut;
}

absl::StatusOr<std::shared_ptr<const Pattern>> PatternOfParts(const Pattern& pattern,
                                                              const std::vector<uint32_t>& parts,
                                                              uint32_t count) {
  std::vector<Pattern::Entry> entries;
  for (uint32_t r = 0; r < pattern.rank_count(); ++r) {
    for (const Exchange& exchange : pattern.exchanges(r)) {
      const uint32_t from = parts[r], to = parts[exchange.peer];
      if (from != to && exchange.out_bytes > 0) entries.push_back({from, to, exchange.out_bytes});
    }
  }
  return Pattern::Make(count, std::move(entries));
}

// The same question with one part to a place.
absl::StatusOr<MappingProblem> ProblemOfParts(const MappingProblem& problem,
                                              const std::vector<uint32_t>& parts, uint32_t count) {
  MappingProblem quotient = problem;
  ASSIGN_OR_RETURN(quotient.pattern, PatternOfParts(*problem.pattern, parts, count));
  std::vector<EndpointIndex> endpoints;
  for (uint32_t p = 0; p < problem.places->count(); ++p) {
    endpoints.push_back(problem.places->endpoint(PlaceIndex(p)));
  }
  ASSIGN_OR_RETURN(quotient.places, Places::OfEndpoints(*problem.snapshot->fabric, endpoints, 1));
  return quotient;
}

// Sizes that the places can take: what is on them now, the surplus where there is room.
std::vector<uint32_t> SizesThatFit(const Places& places, const std::vector<uint32_t>& place_of) {
  std::vector<uint32_t> sizes(places.count(), 0);
  for (const uint32_t p : place_of) ++sizes[p];
  uint32_t surplus = 0;
  for (uint32_t p = 0; p < sizes.size(); ++p) {
    const uint32_t capacity = places.capacity(PlaceIndex(p));
    surplus += sizes[p] - std::min(sizes[p], capacity);
    sizes[p] = std::min(sizes[p], capacity);
  }
  for (const bool used : {true, false}) {  // places that hold ranks already come first
    for (uint32_t p = 0; p < sizes.size() && surplus > 0; ++p) {
      if ((sizes[p] > 0) != used) continue;
      const uint32_t more = std::min(surplus, places.capacity(PlaceIndex(p)) - sizes[p]);
      sizes[p] += more;
      surplus -= more;
    }
  }
  return sizes;
}

absl::StatusOr<Mapped> RunMulticore(const MappingProblem& problem, const Mapping&,
                                    const AlgorithmOptions& options, const SearchControl& control) {
  if (problem.snapshot == nullptr || !problem.places->has_endpoints()) {
    return absl::FailedPreconditionError(
        "multicore hands its parts to a method that needs a fabric and there is none: name one, or "
        "choose multisection");
  }
  const WeightedGraph graph = GraphOf(*problem.pattern);
  const std::vector<uint32_t> sizes = SizesOfParts(problem);
  ASSIGN_OR_RETURN(const std::vector<uint32_t> parts,
                   PartsOfRanks(graph, sizes, options.seed, control));
  ASSIGN_OR_RETURN(const MappingProblem quotient,
                   ProblemOfParts(problem, parts, static_cast<uint32_t>(sizes.size())));
  const std::array<const MappingAlgorithm*, 3> methods = {&GreedyAlgorithm(), &RecursiveAlgorithm(),
                                                          &RcmAlgorithm()};
  const auto then = static_cast<size_t>(ParameterOf(MulticoreAlgorithm(), options, "then")) - 1;
  AlgorithmOptions inner;
  inner.seed = options.seed;
  inner.threads = options.threads;
  ASSIGN_OR_RETURN(const Mapped of_parts,
                   methods[then]->run(quotient, quotient.present(), inner, control));
  std::vector<uint32_t> place_of(problem.rank_count());
  for (uint32_t r = 0; r < place_of.size(); ++r) {
    place_of[r] = of_parts.mapping[parts[r]].value();
  }
  BalanceParts(graph, SizesThatFit(*problem.places, place_of), place_of, control);
  Mapped mapped;
  for (const uint32_t p : place_of) mapped.mapping.emplace_back(p);
  mapped.note = absl::StrFormat("%d parts, mapped by %s", sizes.size(), methods[then]->name);
  return mapped;
}

}  // namespace

const MappingAlgorithm& MulticoreAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{
      "multicore",
      "Hoefler 2011, 3.4",
      false,
      {{"then", 2, 1, 3, "the method for the parts: 1 greedy, 2 recursive, 3 rcm"}},
      RunMulticore};
  return *entry;
}

}  // namespace coppice
