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
#include "daemon/mapping/algorithm/multicore.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/greedy.h"
#include "daemon/mapping/algorithm/rcm.h"
#include "daemon/mapping/algorithm/recursive.h"
#include "daemon/mapping/search/partition/metis_partition.h"
#include "daemon/mapping/search/partition/partition_cut.h"

namespace coppice {
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
