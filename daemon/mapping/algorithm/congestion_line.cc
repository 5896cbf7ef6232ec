#include "daemon/mapping/algorithm/congestion_line.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/greedy.h"
#include "daemon/mapping/algorithm/multicore.h"
#include "daemon/mapping/algorithm/multisection.h"
#include "daemon/mapping/algorithm/recursive.h"
#include "daemon/mapping/search/cluster/capacity_groups.h"
#include "daemon/mapping/search/partition/partition.h"

namespace coppice {
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
