#include <algorithm>
#include <limits>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/auto.h"
#include "daemon/mapping/search/random.h"
#include "daemon/mapping/search/sparse/sparse_search.h"

namespace coppice {
namespace {

constexpr double kHeat = 0.3;
// Swaps near the heaviest partners alone: most of the gain for a fifth of the time, and the others
// are the quicker for it.
constexpr uint32_t kNarrow = 6, kFewPartners = 4;
constexpr uint32_t kRootSamples = 3;  // the cut at the root decides most
constexpr double kAnyway = std::numeric_limits<double>::infinity();
constexpr uint32_t kSettlingCycles = 8;
constexpr double kWorthACycle = 0.25;  // of what the best cycle has gained

constexpr uint32_t kAnnealings = 6;  // of a line in a round
constexpr uint32_t kScoutCuts = 2;
constexpr uint32_t kScoutShare = 5;  // on one thread it does one part in so many of what main does
constexpr double kNothingIsEnough = -1;

}  // namespace

PortfolioTasks::PortfolioTasks(const MappingProblem& problem, const SparseProblem& sparse)
    : problem_(problem), sparse_(sparse), by_cost_(problem) {
  if (!sparse.is_objective) return;
  by_cost_.distances = sparse.distances;
  by_cost_.objective = {.qap_cost = 1};
}

PortfolioTask PortfolioTasks::Named(const std::string& name, const Mapping& start, uint64_t seed,
                                    Parameters parameters) const {
  const auto run = [this, name, start, seed, parameters = std::move(parameters)](
                       uint32_t threads, const SearchControl& control) -> absl::StatusOr<Mapping> {
    ASSIGN_OR_RETURN(const MappingAlgorithm* const algorithm, FindMappingAlgorithm(name));
    AlgorithmOptions options = {seed, threads, {}};
    for (const auto& [parameter, value] : parameters) {
      const AlgorithmParameter& known = *FindParameter(*algorithm, parameter);
      options.parameters.emplace_back(parameter, std::clamp(value, known.least, known.greatest));
    }
    ASSIGN_OR_RETURN(Mapped mapped, algorithm->Run(by_cost_, start, options, control));
    return std::move(mapped.mapping);
  };
  return {name, false, run};
}

PortfolioTask PortfolioTasks::Numbering(const std::string& name,
                                        std::vector<uint32_t> order) const {
  const auto run = [this, order = std::move(order)](
                       uint32_t, const SearchControl&) -> absl::StatusOr<Mapping> {
    Mapping mapping;
    for (const uint32_t place : order) {
      const size_t room = problem_.rank_count() - mapping.size();
      mapping.insert(mapping.end(), std::min<size_t>(room, sparse_.capacities[place]),
                     PlaceIndex(place));
    }
    return mapping;
  };
  return {name, true, run};
}

std::vector<PortfolioTask> PortfolioTasks::Numberings() const {
  const size_t places = sparse_.capacities.size();
  std::vector<PortfolioTask> tasks = {Numbering("block", Numbers(places)),
                                      Numbering("numbers along the groups", sparse_.groups.order)};
  if (problem_.places->has_endpoints()) {
    const auto endpoint = [&](uint32_t p) { return problem_.places->endpoint(PlaceIndex(p)); };
    tasks.push_back(Numbering("numbers along the fabric", NumbersBy(places, endpoint)));
  }
  return tasks;
}

void PortfolioTasks::Swap(uint64_t seed, double worth, const SearchControl& control,
                          Seats& seats) const {
  if (!sparse_.HasLargePlaces()) {
    SwapUntilLocalOptimum(sparse_, {seed, kNarrow, kFewPartners}, control, seats);
    control.Offer(MappingOf(seats));
    if (worth < kAnyway && CostOf(sparse_, seats) > worth) return;
  }
  SwapUntilLocalOptimum(sparse_, {seed}, control, seats);
}

void PortfolioTasks::ExchangePlaces(uint64_t seed, const SearchControl& control,
                                    Seats& seats) const {
  if (sparse_.HasSharedPlaces()) ArrangeParts(sparse_, seed, control, seats);
}

PortfolioTask PortfolioTasks::From(const char* name, const Mapping& start, Refine refine) const {
  const auto run = [start, refine = std::move(refine)](
                       uint32_t, const SearchControl& control) -> absl::StatusOr<Mapping> {
    Seats seats = PlacesOf(start);
    refine(control, seats);
    return MappingOf(seats);
  };
  return {name, true, run};
}

PortfolioTask PortfolioTasks::Cut(const char* name, const MultisectionOptions& options,
                                  Refine refine) const {
  const auto run = [this, options, refine = std::move(refine)](
                       uint32_t, const SearchControl& control) -> absl::StatusOr<Mapping> {
    ASSIGN_OR_RETURN(Seats seats, Multisect(sparse_.graph.links, sparse_.groups, options, control));
    refine(control, seats);
    return MappingOf(seats);
  };
  return {name, true, run};
}

PortfolioTask PortfolioTasks::Polish(const Mapping& start, uint64_t seed, double worth) const {
  return From("local-search", start, [=, this](const SearchControl& control, Seats& seats) {
    if (sparse_.HasLargePlaces()) RefineOnAllLevels(sparse_, seed, nullptr, control, seats);
    Swap(seed, worth, control, seats);
  });
}

PortfolioTask PortfolioTasks::QuickMultisection(uint64_t seed, bool pack) const {
  // All levels are cut first: half a tree is no order yet.
  const MultisectionOptions options = {
      .seed = seed, .pack = pack, .root_samples = sparse_.HasLargePlaces() ? kRootSamples : 1};
  return Cut("multisection", options, [=, this](const SearchControl& control, Seats& seats) {
    control.Offer(MappingOf(seats));
    ExchangePlaces(seed, control, seats);
    if (sparse_.HasLargePlaces()) RefineOnAllLevels(sparse_, seed, nullptr, control, seats);
    // Where groups only approach the distances, the annealing that comes next gains more than the
    // other swaps, and sooner.
    Swap(seed, sparse_.is_objective && !sparse_.groups.exact ? 0 : kAnyway, control, seats);
  });
}

PortfolioTask PortfolioTasks::SwappedMultisection(uint64_t seed, uint32_t tries) const {
  return Cut("multisection", {.seed = seed, .pack = seed % 2 == 0, .tries = tries},
             [=, this](const SearchControl& control, Seats& seats) {
               ExchangePlaces(seed, control, seats);
               Swap(seed, kAnyway, control, seats);
             });
}

PortfolioTask PortfolioTasks::FlatPartition(uint64_t seed) const {
  const auto run = [this, seed](uint32_t, const SearchControl& control) -> absl::StatusOr<Mapping> {
    const PlaceGroups flat = GroupsOfLabels(*problem_.places, {});
    ASSIGN_OR_RETURN(Seats seats, Multisect(sparse_.graph.links, flat, {.seed = seed}, control));
    ArrangeParts(sparse_, seed, control, seats);
    control.Offer(MappingOf(seats));
    RefineOnAllLevels(sparse_, seed, nullptr, control, seats);
    SwapUntilLocalOptimum(sparse_, {seed}, control, seats);
    return MappingOf(seats);
  };
  return {"k-way partition", true, run};
}

PortfolioTask PortfolioTasks::AnnealFrom(const Mapping& start, uint64_t seed,
                                         double proposals) const {
  return From("annealing", start, [=, this](const SearchControl& control, Seats& seats) {
    Anneal(sparse_, {seed, kHeat, proposals}, control, seats);
    ExchangePlaces(seed, control, seats);
    SwapUntilLocalOptimum(sparse_, {seed}, control, seats);
  });
}

PortfolioTask PortfolioTasks::AnnealMultisection(uint64_t seed, double proposals) const {
  return Cut("annealing of a multisection", {.seed = seed, .pack = seed % 2 == 0},
             [=, this](const SearchControl& control, Seats& seats) {
               ExchangePlaces(seed, control, seats);
               Anneal(sparse_, {seed, kHeat, proposals}, control, seats);
               SwapUntilLocalOptimum(sparse_, {seed}, control, seats);
             });
}

PortfolioTask PortfolioTasks::CarefulMultisection(uint64_t seed, uint32_t care) const {
  return Cut("careful multisection",
             {.seed = seed, .tries = 2 + care, .cycles = 1, .combinations = 2 + 4 * care},
             [=, this](const SearchControl& control, Seats& seats) {
               ArrangeParts(sparse_, seed, control, seats);
               Settle(seed, control, seats);
             });
}

// Cycles over all levels for as long as they are worth it, then swaps.
void PortfolioTasks::Settle(uint64_t seed, const SearchControl& control, Seats& seats) const {
  double first = 0;
  for (uint32_t cycle = 0; cycle < kSettlingCycles && !control.stopped(); ++cycle) {
    const double gained = RefineOnAllLevels(sparse_, seed + cycle, nullptr, control, seats);
    control.Offer(MappingOf(seats));
    first = std::max(first, gained);
    if (gained < kWorthACycle * first) break;
  }
  SwapUntilLocalOptimum(sparse_, {seed}, control, seats);
}

PortfolioTask PortfolioTasks::Settling(const Mapping& start, uint64_t seed) const {
  return From("refinement", start, [=, this](const SearchControl& control, Seats& seats) {
    Settle(seed, control, seats);
  });
}

PortfolioTask PortfolioTasks::Combination(const Mapping& better, const Mapping& other,
                                          uint64_t seed) const {
  return From("combination", better, [=, this](const SearchControl& control, Seats& seats) {
    const Seats with = PlacesOf(other);
    RefineOnAllLevels(sparse_, seed, &with, control, seats);
    Settle(seed + 1, control, seats);
  });
}

CongestionLines::CongestionLines(const MappingProblem& problem, const MethodOptions& options,
                                 const SearchControl& control, Incumbent& incumbent)
    : problem_(problem),
      options_(options),
      control_(control),
      incumbent_(incumbent),
      attempt_(incumbent, true) {
  main_.start = scout_.start = problem.present();
  main_.options.seed = options.seed;
  scout_.options = {.seed = options.seed + 1, .cuts = kScoutCuts};
}

CongestionLines::~CongestionLines() {
  finish_ = true;
  if (thread_.joinable()) thread_.join();
}

uint32_t CongestionLines::threads_left() const {
  return std::max(1U, options_.threads) - (thread_.joinable() ? 1 : 0);
}

absl::Status CongestionLines::Continue(Line& line, uint64_t steps, const SearchControl& control) {
  if (line.search == nullptr) {
    ASSIGN_OR_RETURN(CongestionLine made, CongestionLine::Make(problem_, line.start, line.options));
    line.search = std::make_unique<CongestionLine>(std::move(made));
    if (refines_equals_) line.search->PreferSmooth();
    line.search->Begin(control);
  }
  for (uint64_t done = 0; done < steps && !control.stopped();) {
    const double enough = refines_equals_ ? kNothingIsEnough : incumbent_.least_congestion();
    if (line.search->Reached(enough)) break;
    done += line.search->steps();
    line.search->Anneal(enough, control);
    if (&line == &main_) converged_ = line.search->converged();
  }
  return absl::OkStatus();
}

void CongestionLines::Start() {
  if (options_.threads < 2 || !control_.has_deadline() || options_.Is("rounds")) return;
  thread_ = std::thread([this] {
    const SearchControl control([this] { return finish_ || control_.stopped(); },
                                [this](const Mapping& mapping) { attempt_.Offer(mapping); },
                                [this] { return control_.remaining(); });
    // What it cannot search or measure it leaves to others.
    if (!Continue(main_, std::numeric_limits<uint64_t>::max(), control).ok()) return;
    attempt_.Finish(main_.search->best());
    proven_ = incumbent_.Proven(attempt_.best_so_far().score);
  });
}

void CongestionLines::Merge() {
  if (!thread_.joinable()) return;
  const ScoredMapping found = attempt_.best_so_far();
  if (!found.mapping.empty()) incumbent_.Merge("congestion", found);
}

void CongestionLines::RefineEquals() {
  Finish();
  refines_equals_ = true;
  for (Line* const line : {&main_, &scout_}) {
    if (line->search != nullptr) line->search->PreferSmooth();
  }
}

void CongestionLines::Finish() {
  if (!thread_.joinable()) return;
  finish_ = true;
  thread_.join();
  const ScoredMapping& found = attempt_.best();
  if (!found.mapping.empty()) incumbent_.Merge("congestion", found);
}

PortfolioTask CongestionLines::TaskOf(Line& line, uint64_t steps) {
  const auto run = [this, &line, steps](uint32_t,
                                        const SearchControl& control) -> absl::StatusOr<Mapping> {
    RETURN_IF_ERROR(Continue(line, steps, control));
    return line.search->best();
  };
  return {"congestion", false, run};
}

// What helps the best is a dead end for another: they take turns.
void CongestionLines::Restart(absl::Span<const ScoredMapping> others) {
  ++restarts_;
  scout_.search = nullptr;
  scout_.options.seed = options_.seed + 1000003 * restarts_;
  scout_.options.starts = false;
  scout_.start = problem_.present();
  scout_.options.cuts = 1;
  if (others.empty() || restarts_ % 2 == 0) return;
  scout_.start = others[restarts_ / 2 % others.size()].mapping;
  scout_.options.cuts = 0;
}

void CongestionLines::AddTo(std::vector<PortfolioTask>& tasks,
                            absl::Span<const ScoredMapping> others) {
  if (scout_.search != nullptr && scout_.search->converged()) Restart(others);
  const uint64_t first = CongestionLine::FirstSteps(problem_);
  if (thread_.joinable()) {
    tasks.push_back(
        TaskOf(scout_, kAnnealings * (scout_.search == nullptr ? first : scout_.search->steps())));
    return;
  }
  if (main_.search != nullptr && (converged_ || refines_equals_)) {
    main_.search->Visit(incumbent_.best());
  }
  // As much for each, so that no thread waits for long.
  const uint64_t steps = kAnnealings * (main_.search == nullptr ? first : main_.search->steps());
  tasks.push_back(TaskOf(main_, steps));
  if (!control_.has_deadline()) {
    tasks.push_back(TaskOf(scout_, steps));
  } else if (converged_) {
    tasks.push_back(TaskOf(scout_, steps / kScoutShare));
  }
}

}  // namespace coppice
