#include "daemon/mapping/algorithm/auto.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/auto_exhaustive.h"
#include "daemon/mapping/algorithm/auto_incumbent.h"
#include "daemon/mapping/algorithm/auto_rounds.h"

namespace coppice {
namespace {

// Why the present order is the answer without any search; "" if it may not be.
std::string NothingToOrder(const MappingProblem& problem) {
  if (problem.rank_count() == 1) {
    return "the pattern has one rank, which talks to nobody: the present order";
  }
  if (problem.pattern->pair_count() == 0) {
    return "no two ranks exchange anything: the present order";
  }
  return "";
}

absl::StatusOr<Mapped> Auto(const MappingProblem& problem, const Mapping& start,
                            const AlgorithmOptions& options, const SearchControl& control) {
  if (std::string why = NothingToOrder(problem); !why.empty()) {
    return Mapped{problem.present(), std::move(why)};
  }
  if (control.stopped()) {
    return Mapped{start, "no time to search: the order that it was to start from"};
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const SparseProblem> sparse, MakeSparseProblem(problem));
  ASSIGN_OR_RETURN(const std::unique_ptr<Incumbent> incumbent,
                   Incumbent::Make(problem, *sparse, control));
  const auto finish = [&](absl::string_view why) {
    return Mapped{incumbent->best(), absl::StrCat(incumbent->Summary(), "; ", why)};
  };
  if (start != incumbent->best()) RETURN_IF_ERROR(incumbent->Merge("the given start", start));
  if (incumbent->perfect()) return finish("nothing costs anything");
  if (problem.rank_count() <= kFewRanks) {
    ASSIGN_OR_RETURN(const bool complete, TryAllMappings(problem, *sparse, control, *incumbent));
    if (complete) return finish("it is the optimum: all mappings have been looked at");
  }
  Rounds rounds(problem, *sparse, options, control, *incumbent);
  RETURN_IF_ERROR(rounds.Begin());
  const auto limit = static_cast<uint32_t>(ParameterOf(AutoAlgorithm(), options, "rounds"));
  for (uint32_t round = 0; round < limit; ++round) {
    if (incumbent->perfect()) return finish("nothing costs anything any more");
    if (control.stopped()) return finish("stopped by its budget or its caller");
    RETURN_IF_ERROR(rounds.Round(round));
  }
  return finish("all rounds are done");
}

}  // namespace

const MappingAlgorithm& AutoAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{
      "auto",
      "a portfolio of all of them",
      true,
      {{"rounds", 12, 0, 30, "each with about twice the work of the one before"}},
      Auto};
  return *entry;
}

}  // namespace coppice
