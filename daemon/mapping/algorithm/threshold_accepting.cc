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
#include "daemon/mapping/algorithm/threshold_accepting.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/links/congestion_search.h"

namespace coppice {
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
