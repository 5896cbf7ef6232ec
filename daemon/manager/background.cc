#include "daemon/manager/background.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/fair_level.h"
#include "proto/text/log.h"

namespace coppice {
namespace {

constexpr absl::Duration kLookPeriod = absl::Seconds(1);

using SteadyPoint = std::chrono::steady_clock::time_point;

absl::Duration Since(SteadyPoint begin) {
  return absl::FromChrono(std::chrono::steady_clock::now() - begin);
}

SteadyPoint After(absl::Duration wait) {
  return std::chrono::steady_clock::now() +
         absl::ToChronoNanoseconds(std::max(wait, absl::ZeroDuration()));
}

// That this thread has worked, which a stopped one does not.
absl::Duration Worked() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

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

int RoundsFor(int64_t surplus, int64_t rows, int64_t most) {
  return static_cast<int>(std::clamp((surplus + rows - 1) / rows, int64_t{1}, most));
}

constexpr char kDatabaseObject[] = "database";

constexpr size_t kMaxDatabases = 16;  // an agent says what it likes

}  // namespace

void Background::Wake() {
  std::lock_guard lock(mu_);
  woken_ = true;
  changed_.notify_all();
}

bool Background::SleepOfLeases(absl::Duration wait) {
  const SteadyPoint until = After(wait);
  std::unique_lock lock(mu_);
  changed_.wait_until(lock, until, [&] { return leases_.stopping() || woken_; });
  woken_ = false;
  return !leases_.stopping();
}

void Background::LeaseLoop() {
  SteadyPoint began = std::chrono::steady_clock::now(), looked = began;
  absl::Duration worked = Worked();
  absl::Duration waited;  // as it meant to, since `began`
  for (;;) {
    const absl::Duration now = duties_.now();
    const absl::Duration late = Since(began) - waited - (Worked() - worked);
    began = std::chrono::steady_clock::now();
    worked = Worked();
    if (late >= kStall) duties_.stalled(late);
    const absl::Duration next = duties_.expire(now);
    if (Since(looked) >= kLookPeriod) {
      duties_.look();
      looked = std::chrono::steady_clock::now();
    }
    waited = std::clamp(next, absl::Milliseconds(1), kLookPeriod);
    if (!SleepOfLeases(waited)) return;
  }
}

void Background::FlushLoop() {
  for (;;) {
    const SteadyPoint until = After(duties_.flush_every);
    {
      std::unique_lock lock(mu_);
      if (changed_.wait_until(lock, until, [&] { return flushes_.stopping(); })) return;
    }
    duties_.flush();
  }
}

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
  return RoundsFor(kept->newest - kept->oldest + 1 - keep, kEvents, kMaxRoundsOfEvents);
}

void Pruning::PruneOldJobs(absl::Time before) {
  const absl::StatusOr<int64_t> old = calls_->store().EndedJobs(before);
  if (old.ok() && *old == 0) return;
  Prune(calls_, PruneJobs{std::numeric_limits<int64_t>::max(), before, kJobs}, "jobs",
        RoundsFor(old.value_or(0), kJobs, kMaxRoundsOfJobs));
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
    const int rounds = RoundsFor(owned.jobs - level, kJobs, rounds_left);
    rounds_left -= rounds;
    Prune(calls_, PruneJobs{level, absl::InfinitePast(), kJobs, owned.owner}, "jobs", rounds);
  }
}

int Pruning::RoundsOfPlacements(int64_t keep, absl::Time before) {
  const absl::StatusOr<int64_t> all = calls_->store().EndedPlacements(absl::InfiniteFuture());
  const absl::StatusOr<int64_t> old = calls_->store().EndedPlacements(before);
  if (!all.ok() || !old.ok()) return 1;
  return RoundsFor(std::max(*all - keep, *old), kJobs, kMaxRoundsOfJobs);
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

void StoreWatch::Look() {
  const StoreStatistics statistics = calls_->store().Statistics();
  const absl::Duration now = clock_->Monotonic();
  if (fault_.empty() && statistics.fault.empty()) {
    refused_before_ = statistics.refused;
    return;
  }
  if (statistics.fault.empty()) {
    const std::string what =
        absl::StrCat("it is written to again; for ", absl::ToInt64Seconds(now - since_), " s ",
                     statistics.refused - refused_before_, " changes were refused: ", fault_);
    fault_.clear();
    spdlog::info("{}: {}", kDatabaseObject, what);
    return events_->Append("store.recovered", kDatabaseObject, what);
  }
  const bool is_new = fault_.empty();
  fault_ = statistics.fault;
  if (is_new) {
    since_ = now;
    spdlog::error("nothing is granted until this is mended: {}", fault_);
  } else if (now - tried_ < kRetry) {
    return;
  }
  tried_ = now;
  events_->Append("store.failed", kDatabaseObject, fault_);
}

void OtherDaemons::Hear(uint64_t database, absl::string_view from) {
  if (database == 0 || own_ == 0 || database == own_) return;
  const std::string name = absl::StrCat(absl::Hex(database, absl::kZeroPad16));
  std::string words = absl::StrCat(
      from, " was served by the daemon with database ", name, " before, this one has ",
      absl::Hex(own_, absl::kZeroPad16),
      ": if both run on this subnet they give away the same entries; stop one of them");
  const absl::Duration now = clock_->Monotonic();
  {
    std::lock_guard lock(mu_);
    std::erase_if(signs_, [&](const auto& sign) { return now - sign.second.heard > kKept; });
    const auto known = signs_.find(database);
    if (known != signs_.end()) {
      known->second = {std::move(words), now};
      return;
    }
    if (signs_.size() >= kMaxDatabases) return;
    signs_[database] = {words, now};
  }
  spdlog::warn("{}", words);
  events_->Append("daemon.other", absl::StrCat("database:", name), std::move(words));
}

std::vector<std::string> OtherDaemons::Signs() const {
  std::vector<std::string> words;
  const absl::Duration now = clock_->Monotonic();
  std::lock_guard lock(mu_);
  for (const auto& [database, sign] : signs_) {
    if (now - sign.heard <= kKept) words.push_back(sign.words);
  }
  return words;
}

}  // namespace coppice
