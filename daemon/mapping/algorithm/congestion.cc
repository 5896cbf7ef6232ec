// Congestion-aware refinement over the routes that the fabric uses: the idea of T. Hoefler and M.
// Snir's refinement (ICS 2011, section 3.5), with exchanges that are evaluated from two ranks'
// peers alone and chosen where the worst channel says (search/congestion_search.h).
//
// From the best of its start and quick methods (algorithm/congestion_line.h) it never comes back
// worse, and it stops at a bound that no order is below.
//
// The cost is the problem's objective with the smooth congestion of search/traffic_state.h in place
// of the greatest, and where the objective is congestion alone, of equals the one with fewer
// hop-bytes. With traffic shared approximately the search counts even shares, and returns the
// start if by the approximation it was better.
//
// O(steps * peers * length), about 1 to 10 microseconds a step; memory: the tables of
// search/traffic_routes.h and O(pairs + channels).
#include "daemon/mapping/algorithm/congestion.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/congestion_line.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/links/congestion_bound.h"

namespace coppice {
namespace {

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

absl::StatusOr<Mapped> RunCongestion(const MappingProblem& problem, const Mapping& start,
                                     const AlgorithmOptions& options,
                                     const SearchControl& control) {
  if (problem.snapshot == nullptr || !problem.places->has_endpoints()) {
    return absl::FailedPreconditionError(
        "congestion counts links and there is no fabric: name one, or choose an algorithm that "
        "takes distances");
  }
  const auto given = [&](const char* name) {
    return static_cast<uint32_t>(ParameterOf(CongestionAlgorithm(), options, name));
  };
  ASSIGN_OR_RETURN(CongestionLine line, CongestionLine::Make(problem, start,
                                                             {.seed = options.seed,
                                                              .threads = options.threads,
                                                              .starts = given("starts") != 0,
                                                              .cuts = given("cuts")}));
  const uint32_t rounds = given("rounds");
  // Nothing that could stop early needs it.
  const CongestionBound bound = rounds > 0 ? FindCongestionBound(problem) : CongestionBound();
  line.Begin(control);
  for (uint32_t r = 0; r < rounds && !control.stopped(); ++r) {
    if (line.search().Reached(bound.value)) break;
    line.Anneal(bound.value, control);
  }
  return BetterOf(problem, start, line.search(), bound);
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
      RunCongestion};
  return *entry;
}

}  // namespace coppice
