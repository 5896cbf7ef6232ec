#include "daemon/mapping/algorithm/robust_tabu.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/dense/dense_tabu.h"
#include "daemon/mapping/search/logical_workers.h"

namespace coppice {
namespace {

absl::StatusOr<Mapped> RobustTabu(const MappingProblem& problem, const Mapping& start,
                                  const AlgorithmOptions& options, const SearchControl& control) {
  ASSIGN_OR_RETURN(const DenseQap qap, DenseQap::Of(problem));
  const double given_steps = ParameterOf(RobustTabuAlgorithm(), options, "steps");
  const auto steps = static_cast<uint64_t>(given_steps > 0 ? given_steps : 2000.0 * qap.size());
  const auto searches =
      static_cast<uint32_t>(ParameterOf(RobustTabuAlgorithm(), options, "searches"));

  const DenseOrder first = qap.OrderOf(problem, start);
  DenseBest best(problem, control);
  std::vector<DenseSolution> found(searches, {first, qap.Cost(first)});
  RunLogicalWorkers(options.threads, searches, [&](uint32_t i) {
    if (i > 0 && control.stopped()) return;
    Xoshiro random(WorkerSeed(options.seed, 0, i));
    DenseTabu search(qap, i == 0 ? first : RandomDenseOrder(qap.size(), random), random());
    search.Run(steps, control, best);
    if (search.best().cost < found[i].cost) found[i] = search.best();
  });
  const auto winner = std::min_element(
      found.begin(), found.end(), [](const auto& a, const auto& b) { return a.cost < b.cost; });
  return Mapped{DenseQap::MappingOf(problem, winner->order),
                absl::StrFormat("search %d of %d, %d steps each", winner - found.begin() + 1,
                                searches, steps)};
}

}  // namespace

const MappingAlgorithm& RobustTabuAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{
      "robust-tabu",
      "Taillard 1991: robust taboo search; minimises the QAP cost",
      true,
      {{"steps", 0, 0, 1e15, "of each search; 0: 2,000 for each slot"},
       {"searches", 2, 1, 1024, "beside each other, the first from the start"}},
      RobustTabu};
  return *entry;
}

}  // namespace coppice
