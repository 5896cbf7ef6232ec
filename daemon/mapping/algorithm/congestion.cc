#include "daemon/mapping/algorithm/congestion.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/congestion_bound.h"
#include "daemon/mapping/search/congestion_search.h"

namespace coppice {
namespace {

absl::StatusOr<Mapped> Run(const MappingProblem& problem, const Mapping& start,
                           const AlgorithmOptions& options, const SearchControl& control) {
  if (problem.snapshot == nullptr || !problem.places->has_endpoints()) {
    return absl::FailedPreconditionError(
        "congestion counts links and there is no fabric: name one, or choose an algorithm that "
        "takes distances");
  }
  ASSIGN_OR_RETURN(CongestionSearch search, CongestionSearch::Make(problem, start, options.seed));
  const CongestionBound bound = FindCongestionBound(problem);
  const auto rounds = static_cast<uint32_t>(ParameterOf(CongestionAlgorithm(), options, "rounds"));
  uint64_t steps = std::max<uint64_t>(256, 64 * uint64_t{problem.rank_count()});
  for (uint32_t r = 0; r < rounds && !control.stopped() && !search.Reached(bound.value); ++r) {
    search.Anneal({.steps = steps}, bound.value, control);
    steps *= 2;
  }
  Mapped mapped{search.best(), ""};
  if (search.Reached(bound.value)) {
    mapped.note = absl::StrFormat("proven: no order is below %g, %s", bound.value, bound.reason);
  }
  return mapped;
}

}  // namespace

const MappingAlgorithm& CongestionAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{
      "congestion",
      "annealing of the bytes on every channel; the objective",
      true,
      {{"rounds", 8, 1, 64, "annealings, each twice as long as the one before"}},
      Run};
  return *entry;
}

}  // namespace coppice
