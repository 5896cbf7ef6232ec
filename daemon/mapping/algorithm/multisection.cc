#include "daemon/mapping/algorithm/multisection.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/partition/partition.h"
#include "daemon/mapping/search/sparse/sparse_arrange.h"
#include "daemon/mapping/search/sparse/sparse_multilevel.h"

namespace coppice {
namespace {

absl::StatusOr<Mapped> Multisection(const MappingProblem& problem, const Mapping&,
                                    const AlgorithmOptions& options, const SearchControl& control) {
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
      Multisection};
  return *entry;
}

}  // namespace coppice
