// Congestion-aware refinement over the routes that the fabric uses: the idea of T. Hoefler and M.
// Snir's refinement (ICS 2011, section 3.5), with exchanges that are evaluated from two ranks'
// peers alone and chosen where the worst channel says (search/links/congestion_search.h).
//
// From the best of its start and quick methods (algorithm/congestion.h) it never comes back
// worse, and it stops at a bound that no order is below.
//
// The cost is the problem's objective with the smooth congestion of search/links/traffic_state.h in
// place of the greatest, and where the objective is congestion alone, of equals the one with fewer
// hop-bytes. With traffic shared approximately the search counts even shares, and returns the
// start if by the approximation it was better.
//
// O(steps * peers * length), about 1 to 10 microseconds a step; memory: the tables of
// search/links/traffic_routes.h and O(pairs + channels).
#include "daemon/mapping/algorithm/congestion.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/groups/groups.h"
#include "daemon/mapping/search/links/congestion_bound.h"
#include "daemon/mapping/search/partition/partition.h"

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

namespace {

constexpr std::array<double, 6> kHeats = {0.001, 1, 0.1, 0.03, 0.3, 3};
// Hop-bytes beside the congestion lead through large fabrics, most of whose channels say nothing
// of the worst one; on small ones they lead away from the best.
constexpr std::array<double, 2> kSlopes = {1, 0.001};
constexpr uint32_t kPatience = 3;  // times all heats with and without hop-bytes
constexpr double kGain = 0.01;     // of the objective: less is not worth the same heat again

}  // namespace

bool CongestionLine::converged() const {
  return stale_ >= kPatience * kHeats.size() * kSlopes.size() && done_ >= 3 * done_at_gain_;
}

absl::StatusOr<CongestionLine> CongestionLine::Make(const MappingProblem& problem,
                                                    const Mapping& start, const Options& options) {
  ASSIGN_OR_RETURN(CongestionSearch search, CongestionSearch::Make(problem, start, options.seed));
  return CongestionLine(problem, start, options, std::move(search));
}

CongestionLine::CongestionLine(const MappingProblem& problem, const Mapping& start,
                               const Options& options, CongestionSearch search)
    : problem_(problem),
      start_(start),
      options_(options),
      search_(std::move(search)),
      steps_(FirstSteps(problem)) {}

void CongestionLine::Begin(const SearchControl& control) {
  if (options_.starts) VisitStarts(control);
  if (options_.cuts > 0) VisitCuts(control);
}

void CongestionLine::VisitStarts(const SearchControl& control) {
  AlgorithmOptions inner;
  inner.seed = options_.seed;
  inner.threads = options_.threads;
  for (const MappingAlgorithm* method : {&RecursiveAlgorithm(), &MulticoreAlgorithm(),
                                         &MultisectionAlgorithm(), &GreedyAlgorithm()}) {
    if (control.stopped()) return;
    const absl::StatusOr<Mapped> mapped = method->run(problem_, start_, inner, control);
    if (mapped.ok()) search_.Visit(mapped->mapping);  // what a method refuses is not a start
  }
}

// By several seeds.
void CongestionLine::VisitCuts(const SearchControl& control) {
  const PlaceGroups groups = GroupByCapacity(problem_);
  const WeightedGraph graph = GraphOf(*problem_.pattern);
  for (uint32_t cut = 0; cut < options_.cuts && !control.stopped(); ++cut) {
    MultisectionOptions options;
    options.seed = options_.seed + cut;
    options.pack = options.seed % 2 == 1;
    options.cycles = 1;
    const absl::StatusOr<std::vector<uint32_t>> seats = Multisect(graph, groups, options, control);
    if (!seats.ok()) return;
    Mapping mapping;
    for (const uint32_t place : *seats) mapping.push_back(PlaceIndex(place));
    search_.Visit(mapping);
  }
}

void CongestionLine::Anneal(double enough, const SearchControl& control) {
  const double before = search_.best_value().first, first = kHeats[heat_];
  search_.Anneal({.steps = steps_,
                  .first = first,
                  .last = std::min(first, 0.1) * 0.01,
                  .slope = kSlopes[slope_]},
                 enough, control);
  done_ += steps_;
  ++stale_;
  if (search_.best_value().first < before) {
    stale_ = 0;
    done_at_gain_ = done_;
  }
  if (search_.best_value().first < before * (1 - kGain)) return;
  heat_ = (heat_ + 1) % kHeats.size();
  if (heat_ > 0) return;
  slope_ = 1 - slope_;
  if (slope_ == 0) steps_ *= 2;
}

}  // namespace coppice
