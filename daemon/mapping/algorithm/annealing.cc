#include "daemon/mapping/algorithm/annealing.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/partition/partition.h"
#include "daemon/mapping/search/sparse/sparse_anneal.h"
#include "daemon/mapping/search/sparse/sparse_swaps.h"

namespace coppice {
namespace {

double Cost(const SparseProblem& sparse, const Seats& seats) {
  return VisitCost(*sparse.distances, sparse.graph,
                   [&](const auto& cost) { return CostOf(cost, seats); });
}

absl::StatusOr<Mapped> Annealing(const MappingProblem& problem, const Mapping& start,
                                 const AlgorithmOptions& options, const SearchControl& control) {
  const MappingAlgorithm& self = AnnealingAlgorithm();
  ASSIGN_OR_RETURN(const std::shared_ptr<const SparseProblem> sparse,
                   MakeSparseProblem(problem, control));
  const double at_start = Cost(*sparse, PlacesOf(start));
  Seats best = PlacesOf(start);
  double least = at_start;
  const auto keep = [&](const Seats& seats) {
    const double cost = Cost(*sparse, seats);
    if (!(cost < least)) return;
    least = cost;
    best = seats;
    control.Offer(MappingOf(best));
  };
  if (ParameterOf(self, options, "multisection") != 0) {
    MultisectionOptions multisection;
    multisection.seed = options.seed;
    ASSIGN_OR_RETURN(const Seats seats,
                     Multisect(sparse->graph.links, sparse->groups, multisection, control));
    keep(seats);
  }
  const auto rounds = static_cast<uint32_t>(ParameterOf(self, options, "rounds"));
  SparseAnnealOptions anneal;
  anneal.hot = ParameterOf(self, options, "hot");
  for (uint32_t round = 0; round < rounds && !control.stopped(); ++round) {
    Seats seats = best;
    SwapUntilLocalOptimum(*sparse, {options.seed + round}, control, seats);
    keep(seats);
    anneal.seed = options.seed * 1000003 + round;
    anneal.proposals = std::ldexp(ParameterOf(self, options, "proposals"), static_cast<int>(round));
    Anneal(*sparse, anneal, control, seats);
    SwapUntilLocalOptimum(*sparse, {options.seed + round}, control, seats);
    keep(seats);
  }
  return Mapped{MappingOf(best), absl::StrFormat("cost %g, %g at the start", least, at_start)};
}

}  // namespace

const MappingAlgorithm& AnnealingAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{
      "annealing",
      "annealing near partners from a multisection; lessens the QAP cost, or the links where these "
      "are asked for",
      true,
      {{"hot", 0.3, 0.0001, 10, "first temperature over the mean change of a proposal"},
       {"proposals", 100, 1, 1e6, "for each rank in the first round"},
       {"rounds", 4, 1, 20, "each with twice the proposals of the one before"},
       {"multisection", 1, 0, 1, "1: begin with one, if it is better than the start"}},
      Annealing};
  return *entry;
}

}  // namespace coppice
