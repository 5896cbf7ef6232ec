#include "daemon/mapping/algorithm/auto_lines.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/auto.h"

namespace coppice {
namespace {

constexpr uint32_t kAnnealings = 6;  // of a line in a round
constexpr uint32_t kScoutCuts = 2;
constexpr uint32_t kScoutShare = 5;  // on one thread it does one part in so many of what main does
constexpr double kNothingIsEnough = -1;

}  // namespace

CongestionLines::CongestionLines(const MappingProblem& problem, const AlgorithmOptions& options,
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
    if (line.search->search().Reached(enough)) break;
    done += line.search->steps();
    line.search->Anneal(enough, control);
    if (&line == &main_) converged_ = line.search->converged();
  }
  return absl::OkStatus();
}

void CongestionLines::Start() {
  if (options_.threads < 2 || !control_.has_deadline()) return;
  if (ParameterOf(AutoAlgorithm(), options_, "rounds") > 0) return;
  thread_ = std::thread([this] {
    const SearchControl control([this] { return finish_ || control_.stopped(); },
                                [this](const Mapping& mapping) { attempt_.Offer(mapping); },
                                [this] { return control_.remaining(); });
    // What it cannot search or measure it leaves to others.
    if (!Continue(main_, std::numeric_limits<uint64_t>::max(), control).ok()) return;
    attempt_.Finish(main_.search->search().best());
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
    return line.search->search().best();
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
