#include "daemon/manager/pruning.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "daemon/base/fair_level.h"
#include "daemon/base/log.h"

namespace coppice {
namespace {

// Dropped by one mutation, and the most mutations of one run, which comes every 10 s. Events have
// rows of some hundred bytes; a job has one of up to 20 MB.
constexpr uint32_t kEvents = 4096;
constexpr int64_t kMaxRoundsOfEvents = 64;
constexpr uint32_t kJobs = 16;
constexpr int64_t kMaxRoundsOfJobs = 256;
// Clocks that are slewed drift apart, too.
constexpr absl::Duration kStep = absl::Minutes(1);

template <class What>
void Prune(StoreCalls* calls, const What& prune, const char* what, int rounds) {
  calls->Submit(prune, [calls, prune, what, rounds](absl::Status status) {
    if (!status.ok()) {
      spdlog::warn("old {} were not dropped: {}", what, status.ToString());
    } else if (rounds > 1) {
      Prune(calls, prune, what, rounds - 1);
    }
  });
}

int Rounds(int64_t surplus, int64_t rows, int64_t most) {
  return static_cast<int>(std::clamp((surplus + rows - 1) / rows, int64_t{1}, most));
}

}  // namespace

bool Pruning::IsEven(absl::Time wall, absl::Duration monotonic) {
  const absl::Duration apart = (wall - wall_start_) - (monotonic - start_);
  if (!has_start_ || absl::AbsDuration(apart) > kStep) {
    has_start_ = true;
    wall_start_ = wall;
    start_ = monotonic;
  }
  return monotonic - start_ >= kEvenFor;
}

// Where the store does not answer, one mutation will say why.

int Pruning::RoundsOfEvents(int64_t keep) {
  const absl::StatusOr<EventRange> kept = calls_->store().KeptEvents();
  if (!kept.ok()) return 1;
  return Rounds(kept->newest - kept->oldest + 1 - keep, kEvents, kMaxRoundsOfEvents);
}

void Pruning::PruneOldJobs(absl::Time before) {
  const absl::StatusOr<int64_t> old = calls_->store().EndedJobs(before);
  if (old.ok() && *old == 0) return;
  Prune(calls_, PruneJobs{std::numeric_limits<int64_t>::max(), before, kJobs}, "jobs",
        Rounds(old.value_or(0), kJobs, kMaxRoundsOfJobs));
}

void Pruning::PruneSurplusOfJobs(int64_t keep) {
  const absl::StatusOr<int64_t> all = calls_->store().EndedJobs(absl::InfiniteFuture());
  if (all.ok() && *all <= keep) return;
  const absl::StatusOr<std::vector<OwnedJobs>> owners = calls_->store().EndedJobsOfOwners();
  if (!owners.ok()) {
    spdlog::warn("old jobs were not dropped: {}", owners.status().ToString());
    return;
  }
  std::vector<int64_t> sizes;
  for (const OwnedJobs& owned : *owners) sizes.push_back(owned.jobs);
  const int64_t level = FairLevel(sizes, keep);
  int64_t rounds_left = kMaxRoundsOfJobs;
  for (const OwnedJobs& owned : *owners) {
    if (owned.jobs <= level || rounds_left == 0) continue;
    const int rounds = Rounds(owned.jobs - level, kJobs, rounds_left);
    rounds_left -= rounds;
    Prune(calls_, PruneJobs{level, absl::InfinitePast(), kJobs, owned.owner}, "jobs", rounds);
  }
}

int Pruning::RoundsOfPlacements(int64_t keep, absl::Time before) {
  const absl::StatusOr<int64_t> all = calls_->store().EndedPlacements(absl::InfiniteFuture());
  const absl::StatusOr<int64_t> old = calls_->store().EndedPlacements(before);
  if (!all.ok() || !old.ok()) return 1;
  return Rounds(std::max(*all - keep, *old), kJobs, kMaxRoundsOfJobs);
}

void Pruning::Run(const Limits& events, const Limits& ended) {
  const absl::Time wall = clock_->Now();
  PruneEvents prune_events{events.keep, absl::InfinitePast(), kEvents};
  PrunePlacements prune_placements{ended.keep, absl::InfinitePast(), kJobs};
  if (IsEven(wall, clock_->Monotonic())) {
    prune_events.before = wall - events.age;
    prune_placements.before = wall - ended.age;
    PruneOldJobs(wall - ended.age);
  }
  Prune(calls_, prune_events, "events", RoundsOfEvents(events.keep));
  PruneSurplusOfJobs(ended.keep);
  Prune(calls_, prune_placements, "placements",
        RoundsOfPlacements(ended.keep, prune_placements.before));
}

}  // namespace coppice
