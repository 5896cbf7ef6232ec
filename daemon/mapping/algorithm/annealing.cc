#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/algorithm/congestion.h"
#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/dense/dense_search.h"
#include "daemon/mapping/search/partition/partition.h"
#include "daemon/mapping/search/sparse/sparse_search.h"
#include "daemon/mapping/search_control.h"

namespace coppice {

absl::StatusOr<Mapped> RunAnnealing(const MappingProblem& problem, const Mapping& start,
                                    const MethodOptions& options, const SearchControl& control) {
  ASSIGN_OR_RETURN(const SparsePointer sparse, MakeSparseProblem(problem, control));
  const double at_start = CostOf(*sparse, PlacesOf(start));
  Seats best = PlacesOf(start);
  double least = at_start;
  const auto keep = [&](const Seats& seats) {
    const double cost = CostOf(*sparse, seats);
    if (!(cost < least)) return;
    least = cost;
    best = seats;
    control.Offer(MappingOf(best));
  };
  if (options.Is("multisection")) {
    ASSIGN_OR_RETURN(const Seats seats, Multisect(sparse->graph.links, sparse->groups,
                                                  {.seed = options.seed}, control));
    keep(seats);
  }
  const uint32_t rounds = options.Count("rounds");
  SparseAnnealOptions anneal;
  anneal.hot = options.Of("hot");
  for (uint32_t round = 0; round < rounds && !control.stopped(); ++round) {
    Seats seats = best;
    SwapUntilLocalOptimum(*sparse, {options.seed + round}, control, seats);
    keep(seats);
    anneal.seed = options.seed * 1000003 + round;
    anneal.proposals = std::ldexp(options.Of("proposals"), static_cast<int>(round));
    Anneal(*sparse, anneal, control, seats);
    SwapUntilLocalOptimum(*sparse, {options.seed + round}, control, seats);
    keep(seats);
  }
  return Mapped{MappingOf(best), absl::StrFormat("cost %g, %g at the start", least, at_start)};
}

namespace {

struct Plan {
  DenseSchedule schedule;
  uint32_t workers = 1;
  uint64_t exchange = 1, patience = 1;
};

Plan PlanOf(const DenseQap& qap, const MethodOptions& options) {
  const uint32_t size = qap.size();
  Plan plan;
  plan.schedule = MeasuredSchedule(qap, WorkerSeed(options.seed, 0, 0));
  plan.schedule.cauchy = options.Is("cauchy");
  plan.schedule.iterations =
      static_cast<uint64_t>(options.Or("iterations", size <= 256 ? 50'000 : 100'000));
  plan.schedule.candidates = options.Count("candidates");
  plan.schedule.last = options.Or("final-temperature", plan.schedule.last / plan.schedule.first) *
                       plan.schedule.first;
  plan.workers = static_cast<uint32_t>(options.Or("workers", size <= 100 ? size : 125));
  plan.exchange =
      static_cast<uint64_t>(options.Or("exchange", size > 256 && size <= 512 ? 100 : 1000));
  const double patience = std::min(0.2 * static_cast<double>(plan.schedule.iterations),
                                   std::max<double>(100.0 * size, plan.exchange));
  plan.patience = static_cast<uint64_t>(options.Or("patience", patience));
  return plan;
}

struct Outcome {
  DenseSolution best;
  uint64_t iterations = 0;
};

absl::StatusOr<Outcome> Anneal(const DenseQap& qap, const Plan& plan, const DenseOrder& start,
                               const MethodOptions& options, const SearchControl& control,
                               DenseBest& reported) {
  SearchTeam& team = control.team();
  const uint32_t first = team.process() * plan.workers;  // of this process
  std::vector<Xoshiro> randoms;
  for (uint32_t i = 0; i < plan.workers; ++i) {
    randoms.emplace_back(WorkerSeed(options.seed, 1, first + i));
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
    RunLogicalWorkers(options.threads, plan.workers, [&](uint32_t i) {
      if (i > 0 && control.stopped()) return;
      DenseState state = shared;
      if (done == 0 && first + i > 0) state.Reset(RandomDenseOrder(qap.size(), randoms[i]));
      found[i] = RunChain(state, plan.schedule, done, until, randoms[i], control);
      reported.Report(found[i].order, found[i].cost);
    });
    done = until;
    DenseSolution& best = *absl::c_min_element(found);
    RETURN_IF_ERROR(team.ShareBest(best));
    if (best.cost < outcome.best.cost) {
      outcome.best = std::move(best);
      improved_at = done;
    }
    shared.Reset(outcome.best.order);
  }
  return outcome;
}

}  // namespace

absl::StatusOr<Mapped> RunParallelAnnealing(const MappingProblem& problem, const Mapping& start,
                                            const MethodOptions& options,
                                            const SearchControl& control) {
  ASSIGN_OR_RETURN(const DenseQap qap, DenseQap::Of(problem));
  const DenseOrder order = qap.OrderOf(problem, start);
  if (qap.size() < 2) return Mapped{start, "one slot"};
  const Plan plan = PlanOf(qap, options);
  DenseBest reported(problem, control);
  ASSIGN_OR_RETURN(const Outcome outcome, Anneal(qap, plan, order, options, control, reported));
  return Mapped{DenseQap::MappingOf(problem, outcome.best.order),
                absl::StrFormat("%d workers, %d of %d iterations",
                                plan.workers * control.team().process_count(), outcome.iterations,
                                plan.schedule.iterations)};
}

// Threshold accepting as Hoefler and Snir refine with it ("Generic topology mapping strategies for
// large-scale parallel architectures", ICS 2011, section 3.5), after G. Dueck and T. Scheuer,
// "Threshold accepting", J. Comput. Phys. 90, 1990.
//
//     cost
//      |  \    /\  up by less than the threshold is taken ...
//      |   \__/  \      /\x ... up by more is not
//      |          \____/  \____          the threshold falls to 0 with the outer iterations
//      +----------------------------
//
//     for outer = 0 .. until time or `outer-iterations` are spent
//         threshold = first threshold * (1 - outer / outer-iterations)
//         20 times: exchange two random positions; keep it if cost' < cost + threshold
//
// The first threshold is the mean change of an exchange that makes things worse, over a sample.
//
// Departures: the weight function is the problem's objective, with the exact congestion over the
// routes and not that of algorithm 3, because a state of the channels answers an exchange in
// O(peers * length). Positions are slots, empty ones included. The best mapping met is returned.
// The threshold falls by the count of outer iterations and not by the time limit: equal seeds give
// equal results. O(20 * outer iterations * peers * length).

absl::StatusOr<Mapped> RunThresholdAccepting(const MappingProblem& problem, const Mapping& start,
                                             const MethodOptions& options,
                                             const SearchControl& control) {
  constexpr uint32_t kInnerIterations = 20, kSample = 200;
  ASSIGN_OR_RETURN(TrafficState state,
                   TrafficState::Make(problem, problem.present(), problem.objective.qap_cost > 0));
  const LinkObjective objective(problem.objective, state.Now());
  if (start != state.mapping()) state.Assign(start);
  Xoshiro random(options.seed);
  const auto try_any = [&] {
    const uint32_t rank = random.Below(problem.rank_count());
    TrafficState::Values values = state.Try(rank, random.Below(problem.places->slot_count()));
    values.congestion = state.TriedCongestion();
    return objective.Of(values);
  };
  LinkObjective::Value now = objective.Of(state.Now()), best = now;
  double sum = 0;
  uint32_t worse = 0;
  for (uint32_t i = 0; i < kSample; ++i) {
    const double change = try_any().first - now.first;
    if (!(change > 0) || !std::isfinite(change)) continue;
    sum += change;
    ++worse;
  }
  const double first = worse == 0 ? 0 : sum / worse, count = options.Of("outer-iterations");
  Mapped mapped{state.mapping(), ""};
  uint64_t outer = 0;
  for (; outer < count && !control.stopped(); ++outer) {
    const double threshold = first * (1 - static_cast<double>(outer) / count);
    for (uint32_t i = 0; i < kInnerIterations; ++i) {
      const LinkObjective::Value next = try_any();
      if (!(next.first < now.first + threshold) && next >= now) continue;
      state.Commit();
      now = next;
      if (now >= best) continue;
      best = now;
      mapped.mapping = state.mapping();
    }
  }
  mapped.note = absl::StrFormat("%d outer iterations of %d exchanges, first threshold %g", outer,
                                kInnerIterations, first);
  return mapped;
}

}  // namespace coppice
