#include "daemon/mapping/algorithm/parallel_annealing.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/dense/dense_chain.h"
#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/logical_workers.h"

namespace coppice {
namespace {

struct Plan {
  DenseSchedule schedule;
  uint32_t workers = 1, threads = 1;
  uint64_t exchange = 1, patience = 1, seed = 1;
};

Plan PlanOf(const DenseQap& qap, const AlgorithmOptions& options) {
  const auto given = [&](absl::string_view name, double preset) {
    const double value = ParameterOf(ParallelAnnealingAlgorithm(), options, name);
    return value > 0 ? value : preset;
  };
  const uint32_t size = qap.size();
  Plan plan;
  plan.schedule = MeasuredSchedule(qap, WorkerSeed(options.seed, 0, 0));
  plan.schedule.cooling =
      given("cauchy", 0) > 0 ? DenseCooling::kCauchy : DenseCooling::kProportional;
  plan.schedule.iterations =
      static_cast<uint64_t>(given("iterations", size <= 256 ? 50'000 : 100'000));
  plan.schedule.candidates = static_cast<uint32_t>(given("candidates", 50));
  plan.schedule.last =
      given("final-temperature", plan.schedule.last / plan.schedule.first) * plan.schedule.first;
  plan.workers = static_cast<uint32_t>(given("workers", size <= 100 ? size : 125));
  plan.exchange = static_cast<uint64_t>(given("exchange", size > 256 && size <= 512 ? 100 : 1000));
  const double patience = std::min(0.2 * static_cast<double>(plan.schedule.iterations),
                                   std::max<double>(100.0 * size, plan.exchange));
  plan.patience = static_cast<uint64_t>(given("patience", patience));
  plan.threads = options.threads;
  plan.seed = options.seed;
  return plan;
}

struct Outcome {
  DenseSolution best;
  uint64_t iterations = 0;
};

absl::StatusOr<Outcome> Anneal(const DenseQap& qap, const Plan& plan, const DenseOrder& start,
                               const SearchControl& control, DenseBest& reported) {
  SearchTeam& team = control.team();
  const uint32_t first = team.process() * plan.workers;  // of this process
  std::vector<Xoshiro> randoms;
  for (uint32_t i = 0; i < plan.workers; ++i) {
    randoms.emplace_back(WorkerSeed(plan.seed, 1, first + i));
  }
  Outcome outcome{{start, qap.Cost(start)}, 0};
  RETURN_IF_ERROR(team.ShareBest(outcome.best));
  DenseState shared(qap, start);
  uint64_t& done = outcome.iterations;
  for (uint64_t improved_at = 0;
       done < plan.schedule.iterations && done - improved_at < plan.patience;) {
    ASSIGN_OR_RETURN(const bool stopped, team.Any(control.stopped()));
    if (stopped) break;
    const uint64_t until = std::min(done + plan.exchange, plan.schedule.iterations);
    std::vector<DenseSolution> found(plan.workers);
    RunLogicalWorkers(plan.threads, plan.workers, [&](uint32_t i) {
      if (i > 0 && control.stopped()) return;
      DenseState state = shared;
      if (done == 0 && first + i > 0) state.Reset(RandomDenseOrder(qap.size(), randoms[i]));
      found[i] = RunChain(state, plan.schedule, done, until, randoms[i], control);
      reported.Report(found[i].order, found[i].cost);
    });
    done = until;
    auto& best = *std::min_element(found.begin(), found.end(),
                                   [](const auto& a, const auto& b) { return a.cost < b.cost; });
    RETURN_IF_ERROR(team.ShareBest(best));
    if (best.cost < outcome.best.cost) {
      outcome.best = std::move(best);
      improved_at = done;
    }
    shared.Reset(outcome.best.order);
  }
  return outcome;
}

absl::StatusOr<Mapped> ParallelAnnealing(const MappingProblem& problem, const Mapping& start,
                                         const AlgorithmOptions& options,
                                         const SearchControl& control) {
  ASSIGN_OR_RETURN(const DenseQap qap, DenseQap::Of(problem));
  const DenseOrder order = qap.OrderOf(problem, start);
  if (qap.size() < 2) return Mapped{start, "one slot"};
  const Plan plan = PlanOf(qap, options);
  DenseBest reported(problem, control);
  ASSIGN_OR_RETURN(const Outcome outcome, Anneal(qap, plan, order, control, reported));
  return Mapped{DenseQap::MappingOf(problem, outcome.best.order),
                absl::StrFormat("%d workers, %d of %d iterations",
                                plan.workers * control.team().process_count(), outcome.iterations,
                                plan.schedule.iterations)};
}

}  // namespace

const MappingAlgorithm& ParallelAnnealingAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{
      "parallel-annealing",
      "Baranov 2022 (GraphHunter): workers that exchange the best; minimises the QAP cost",
      true,
      {{"workers", 0, 0, 4096, "of each process; 0: one for each slot up to 100, then 125"},
       {"iterations", 0, 0, 1e12, "temperatures; 0: 50,000 up to 256 slots, then 100,000"},
       {"candidates", 50, 1, 1e6, "swaps tried at each temperature"},
       {"exchange", 0, 0, 1e9,
        "iterations between exchanges; 0: 1,000, or 100 at 257 to 512 slots"},
       {"cauchy", 1, 0, 1, "1: Cauchy cooling, 0: proportional"},
       {"final-temperature", 0, 0, 1, "as a share of the first; 0: a thousandth"},
       {"patience", 0, 0, 1e12, "iterations without improvement; 0: 100 for each slot"}},
      ParallelAnnealing,
      true};
  return *entry;
}

}  // namespace coppice
