#include "daemon/manager/event_pruning.h"

#include <algorithm>

#include "daemon/base/log.h"

namespace coppice {
namespace {

// Events dropped by one mutation, and the most mutations of one run: 26,000 events a second go
// before any are kept too long.
constexpr uint32_t kRows = 4096;
constexpr int64_t kMostRounds = 64;
// Clocks that are slewed drift apart, too.
constexpr absl::Duration kStep = absl::Minutes(1);

void Prune(StoreCalls* calls, PruneEvents prune, int rounds) {
  calls->Submit(prune, [calls, prune, rounds](absl::Status status) {
    if (!status.ok()) {
      spdlog::warn("old events were not dropped: {}", status.ToString());
    } else if (rounds > 1) {
      Prune(calls, prune, rounds - 1);
    }
  });
}

}  // namespace

bool EventPruning::IsEven(absl::Time wall, absl::Duration monotonic) {
  const absl::Duration apart = (wall - wall_start_) - (monotonic - start_);
  if (!has_start_ || absl::AbsDuration(apart) > kStep) {
    has_start_ = true;
    wall_start_ = wall;
    start_ = monotonic;
  }
  return monotonic - start_ >= kEvenFor;
}

int EventPruning::Rounds(int64_t keep) {
  const absl::StatusOr<EventRange> kept = calls_->store().KeptEvents();
  if (!kept.ok()) return 1;  // the mutation will say why
  const int64_t beyond = kept->newest - kept->oldest + 1 - keep;
  return static_cast<int>(std::clamp((beyond + kRows - 1) / kRows, int64_t{1}, kMostRounds));
}

void EventPruning::Run(int64_t keep, absl::Duration age) {
  const absl::Time wall = clock_->Now();
  PruneEvents prune{keep, absl::InfinitePast(), kRows};
  if (IsEven(wall, clock_->Monotonic())) prune.before = wall - age;
  Prune(calls_, prune, Rounds(keep));
}

}  // namespace coppice
