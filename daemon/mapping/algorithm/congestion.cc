// Congestion-aware refinement over the routes that the fabric uses: the idea of T. Hoefler and M.
// Snir's refinement (ICS 2011, section 3.5), with exchanges that are evaluated from two ranks'
// peers alone and chosen where the worst channel says (search/congestion_search.h).
//
//     start, quick methods, cuts along         the best of them is where the search begins
//     what the cables carry
//                   |
//     anneal with heat 0.001, 1, 0.1, ...      each from the best so far, again while it gains;
//                   |                          first with the hop-bytes beside the congestion,
//                   |                          then almost without; then all twice as long
//                   |
//     never worse than the start; stops at a bound that no order is below
//
// Little heat polishes what is best, much heat leaves it and comes down elsewhere: neither alone
// did as well on the patterns and allocations that we measured, and which of them wins changes
// from case to case. Heat is the first temperature over the mean change of an exchange.
//
// The cost is the problem's objective with the smooth congestion of search/traffic_state.h in place
// of the greatest, and where the objective is congestion alone, of equals the one with fewer
// hop-bytes. With traffic shared approximately the search counts even shares, and returns the
// start if by the approximation it was better.
//
// O(steps * peers * length), about 1 to 10 microseconds a step; memory: the tables of
// search/traffic_routes.h and O(pairs + channels).
#include "daemon/mapping/algorithm/congestion.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/greedy.h"
#include "daemon/mapping/algorithm/multicore.h"
#include "daemon/mapping/algorithm/multisection.h"
#include "daemon/mapping/algorithm/recursive.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/capacity_groups.h"
#include "daemon/mapping/search/congestion_bound.h"
#include "daemon/mapping/search/congestion_search.h"
#include "daemon/mapping/search/partition.h"

namespace coppice {
namespace {

constexpr std::array<double, 6> kHeats = {0.001, 1, 0.1, 0.03, 0.3, 3};
// Hop-bytes beside the congestion lead through large fabrics, most of whose channels say nothing
// of the worst one; on small ones they lead away from the best.
constexpr std::array<double, 2> kSlopes = {1, 0.001};
constexpr double kGain = 0.01;  // of the objective: less is not worth the same heat again

// Cuts along what the cables carry, by several seeds.
void VisitCuts(const MappingProblem& problem, uint64_t seed, uint32_t cuts,
               const SearchControl& control, CongestionSearch& search) {
  if (cuts == 0) return;
  const PlaceGroups groups = GroupByCapacity(problem);
  const WeightedGraph graph = GraphOf(*problem.pattern);
  for (uint32_t cut = 0; cut < cuts && !control.stopped(); ++cut) {
    MultisectionOptions options;
    options.seed = seed + cut;
    options.pack = options.seed % 2 == 1;
    options.cycles = 1;
    const absl::StatusOr<std::vector<uint32_t>> seats = Multisect(graph, groups, options, control);
    if (!seats.ok()) return;
    Mapping mapping;
    for (const uint32_t place : *seats) mapping.push_back(PlaceIndex(place));
    search.Visit(mapping);
  }
}

// Begins where the quick methods end, as far as there is time.
void VisitStarts(const MappingProblem& problem, const Mapping& start,
                 const AlgorithmOptions& options, const SearchControl& control,
                 CongestionSearch& search) {
  AlgorithmOptions inner;
  inner.seed = options.seed;
  inner.threads = options.threads;
  for (const MappingAlgorithm* method : {&RecursiveAlgorithm(), &MulticoreAlgorithm(),
                                         &MultisectionAlgorithm(), &GreedyAlgorithm()}) {
    if (control.stopped()) return;
    const absl::StatusOr<Mapped> mapped = method->run(problem, start, inner, control);
    if (mapped.ok()) search.Visit(mapped->mapping);  // what a method refuses is not a start
  }
}

// Lower is better: by the measures themselves, whatever the search has counted.
absl::StatusOr<std::pair<double, double>> Measured(const MappingProblem& problem,
                                                   const Mapping& mapping,
                                                   const MappingMeasures& present) {
  ASSIGN_OR_RETURN(const MappingMeasures measures, Measure(problem, mapping));
  return std::pair(Score(problem.objective, measures, present), *measures.hop_bytes);
}

absl::StatusOr<Mapped> BetterOf(const MappingProblem& problem, const Mapping& start,
                                const CongestionSearch& search, const CongestionBound& bound) {
  ASSIGN_OR_RETURN(const MappingMeasures present, Measure(problem, problem.present()));
  std::pair before(Score(problem.objective, present, present), *present.hop_bytes);
  if (start != problem.present()) {
    ASSIGN_OR_RETURN(before, Measured(problem, start, present));
  }
  ASSIGN_OR_RETURN(const auto after, Measured(problem, search.best(), present));
  if (after > before) return Mapped{start, "nothing better than the start was found"};
  Mapped mapped{search.best(), ""};
  if (problem.traffic != TrafficModel::kApproximate && search.Reached(bound.value)) {
    mapped.note = absl::StrFormat("proven: no order is below %g, %s", bound.value, bound.reason);
  }
  return mapped;
}

absl::StatusOr<Mapped> Run(const MappingProblem& problem, const Mapping& start,
                           const AlgorithmOptions& options, const SearchControl& control) {
  if (problem.snapshot == nullptr || !problem.places->has_endpoints()) {
    return absl::FailedPreconditionError(
        "congestion counts links and there is no fabric: name one, or choose an algorithm that "
        "takes distances");
  }
  ASSIGN_OR_RETURN(CongestionSearch search, CongestionSearch::Make(problem, start, options.seed));
  const auto rounds = static_cast<uint32_t>(ParameterOf(CongestionAlgorithm(), options, "rounds"));
  // Nothing that could stop early needs it.
  const CongestionBound bound = rounds > 0 ? FindCongestionBound(problem) : CongestionBound();
  if (ParameterOf(CongestionAlgorithm(), options, "starts") != 0) {
    VisitStarts(problem, start, options, control, search);
  }
  VisitCuts(problem, options.seed,
            static_cast<uint32_t>(ParameterOf(CongestionAlgorithm(), options, "cuts")), control,
            search);
  uint64_t steps = std::max<uint64_t>(256, 64 * uint64_t{problem.rank_count()});
  size_t heat = 0, slope = 0;
  for (uint32_t r = 0; r < rounds && !control.stopped() && !search.Reached(bound.value); ++r) {
    const double before = search.best_value().first, first = kHeats[heat];
    search.Anneal({.steps = steps,
                   .first = first,
                   .last = std::min(first, 0.1) * 0.01,
                   .slope = kSlopes[slope]},
                  bound.value, control);
    if (search.best_value().first < before * (1 - kGain)) continue;
    heat = (heat + 1) % kHeats.size();
    if (heat > 0) continue;
    slope = 1 - slope;
    if (slope == 0) steps *= 2;
  }
  return BetterOf(problem, start, search, bound);
}

}  // namespace

const MappingAlgorithm& CongestionAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{
      "congestion",
      "annealing of the bytes on every channel; the objective",
      true,
      {{"rounds", 48, 0, 1e6, "annealings at most"},
       {"starts", 1, 0, 1, "1: begins with the best of start and quick methods"},
       {"cuts", 4, 0, 1000, "cuts of the pattern along the cables' capacities to begin with"}},
      Run};
  return *entry;
}

}  // namespace coppice
