#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/search/dense/dense_qap.h"
#include "daemon/mapping/search/dense/dense_search.h"
#include "daemon/mapping/search/links/congestion_search.h"
#include "daemon/mapping/search/partition/partition.h"
#include "daemon/mapping/search/sparse/sparse_swaps.h"
#include "daemon/mapping/search_control.h"

namespace coppice {
namespace {

absl::StatusOr<Mapped> RunAnnealing(const MappingProblem& problem, const Mapping& start,
                                    const AlgorithmOptions& options, const SearchControl& control) {
  const MappingAlgorithm& self = AnnealingAlgorithm();
  ASSIGN_OR_RETURN(const std::shared_ptr<const SparseProblem> sparse,
                   MakeSparseProblem(problem, control));
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
      RunAnnealing};
  return *entry;
}

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
// O(peers * length) and not O(pairs * links); so a thousand times as many are tried in a second.
// Positions are slots, empty ones included. The best mapping met is returned. The threshold falls
// by the count of outer iterations, of which there are 1,000 by preset, and not by the time limit:
// equal seeds give equal results; a longer budget needs more `outer-iterations`.
//
// O(20 * outer iterations * peers * length). Without a fabric the state has nothing to count and
// only distances are left: pair exchange does that.

namespace {

constexpr uint32_t kInnerIterations = 20;
constexpr uint32_t kSample = 200;

class ThresholdAccepting {
 public:
  ThresholdAccepting(const MappingProblem& problem, TrafficState state,
                     const LinkObjective& objective, uint64_t seed)
      : problem_(problem), state_(std::move(state)), objective_(objective), random_(seed) {}

  Mapped Run(uint64_t outer_iterations, const SearchControl& control) {
    LinkObjective::Value now = objective_.Of(state_.Now()), best = now;
    Mapped mapped{state_.mapping(), ""};
    const double first = FirstThreshold(now.first);
    uint64_t outer = 0;
    for (; outer < outer_iterations && !control.stopped(); ++outer) {
      const double threshold =
          first * (1 - static_cast<double>(outer) / static_cast<double>(outer_iterations));
      for (uint32_t i = 0; i < kInnerIterations; ++i) {
        const LinkObjective::Value next = TryAny();
        if (!(next.first < now.first + threshold) && next >= now) continue;
        state_.Commit();
        now = next;
        if (now >= best) continue;
        best = now;
        mapped.mapping = state_.mapping();
      }
    }
    mapped.note = absl::StrFormat("%d outer iterations of %d exchanges, first threshold %g", outer,
                                  kInnerIterations, first);
    return mapped;
  }

 private:
  LinkObjective::Value TryAny() {
    const uint32_t rank = random_.Below(problem_.rank_count());
    TrafficState::Values values = state_.Try(rank, random_.Below(problem_.places->slot_count()));
    values.congestion = state_.TriedCongestion();
    return objective_.Of(values);
  }

  double FirstThreshold(double now) {
    double sum = 0;
    uint32_t worse = 0;
    for (uint32_t i = 0; i < kSample; ++i) {
      const double change = TryAny().first - now;
      if (!(change > 0) || !std::isfinite(change)) continue;
      sum += change;
      ++worse;
    }
    return worse == 0 ? 0 : sum / worse;
  }

  const MappingProblem& problem_;
  TrafficState state_;
  const LinkObjective& objective_;
  Xoshiro random_;
};

absl::StatusOr<Mapped> RunThresholdAccepting(const MappingProblem& problem, const Mapping& start,
                                             const AlgorithmOptions& options,
                                             const SearchControl& control) {
  if (problem.snapshot == nullptr || !problem.places->has_endpoints()) {
    return absl::FailedPreconditionError(
        "threshold-accepting counts links and there is no fabric: name one, or choose "
        "pair-exchange");
  }
  ASSIGN_OR_RETURN(TrafficState state,
                   TrafficState::Make(problem, problem.present(), problem.objective.qap_cost > 0));
  const LinkObjective objective(problem.objective, state.Now());
  if (start != state.mapping()) state.Assign(start);
  const double outer = ParameterOf(ThresholdAcceptingAlgorithm(), options, "outer-iterations");
  return ThresholdAccepting(problem, std::move(state), objective, options.seed)
      .Run(static_cast<uint64_t>(outer), control);
}

}  // namespace

const MappingAlgorithm& ThresholdAcceptingAlgorithm() {
  static const auto* const entry = new MappingAlgorithm{
      "threshold-accepting",
      "Hoefler 2011, 3.5",
      true,
      {{"outer-iterations", 1000, 1, 1e12, "times 20 exchanges, while the threshold falls to 0"}},
      RunThresholdAccepting};
  return *entry;
}

}  // namespace coppice
