#include "daemon/mapping/algorithm/local_search.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/sparse/sparse_multilevel.h"
#include "daemon/mapping/search/sparse/sparse_swaps.h"

namespace coppice {
namespace {

absl::StatusOr<Mapped> LocalSearch(const MappingProblem& problem, const Mapping& start,
                                   const AlgorithmOptions& options, const SearchControl& control) {
  const MappingAlgorithm& self = LocalSearchAlgorithm();
  ASSIGN_OR_RETURN(const std::shared_ptr<const SparseProblem> sparse,
                   MakeSparseProblem(problem, control));
  Seats seats = PlacesOf(start);
  double gained = 0;
  if (sparse->HasLargePlaces()) {
    gained += RefineOnAllLevels(*sparse, options.seed, nullptr, control, seats);
  }
  SwapOptions swaps;
  swaps.seed = options.seed;
  swaps.near = static_cast<uint32_t>(ParameterOf(self, options, "near"));
  gained += SwapUntilLocalOptimum(*sparse, swaps, control, seats);
  if (!(gained > 0)) return Mapped{start, "no swap or move near a partner helps"};
  Mapped mapped{MappingOf(seats), absl::StrFormat("gained %g", gained)};
  control.Offer(mapped.mapping);
  return mapped;
}

}  // namespace

const MappingAlgorithm& LocalSearchAlgorithm() {
  static const auto* const entry =
      new MappingAlgorithm{"local-search",
                           "Schulz and Traeff 2017, sparse QAP; lessens the QAP cost, or the links "
                           "where these are asked "
                           "for",
                           true,
                           {{"near", 16, 1, 64, "places that are tried near each partner's"}},
                           LocalSearch};
  return *entry;
}

}  // namespace coppice
