// The manager's options, which may change while it runs: what one holder may have at most, what
// ordinary users together leave to administrators, how placements are made and kept, and all else.
// Names and values only.
#ifndef COPPICE_DAEMON_MANAGER_OPTIONS_H_
#define COPPICE_DAEMON_MANAGER_OPTIONS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/manager/inventory.h"
#include "daemon/placement/placement_request.h"
#include "daemon/tree/cost_profile.h"
#include "proto/text/limits.h"

namespace coppice {

// Of the first eight there is a use, which the ledger keeps; the others bound one thing at a time,
// but for the planner's time, of which the ledger keeps what was spent.
enum class Quota : uint8_t {
  kEntries,         // of switches, that granted trees take
  kTrees,           // granted
  kTreeRanks,       // of granted trees, which the daemon keeps in memory
  kJobs,            // active
  kRanks,           // of active jobs
  kNodes,           // that placements hold, and jobs that were started from them
  kPatternBytes,    // of stored patterns
  kSearches,        // for orders of ranks or nodes, under way
  kKeptBytes,       // of the ranks of ended jobs: older ones are dropped, nothing is refused
  kLeaseSeconds,    // of a job's lease and of a placement's term
  kSwitchEntries,   // of any one switch
  kPlannerSeconds,  // of processors, in an hour: for trees, orders of ranks and placements
  kWeight,  // of a tenant, 1 unless it is set: what it has of what all share while others ask
};
inline constexpr size_t kCountedQuotas = 8;
inline constexpr size_t kQuotas = 13;

inline bool IsCounted(Quota quota) { return static_cast<size_t>(quota) < kCountedQuotas; }

struct QuotaWords {
  Quota quota;
  absl::string_view name;  // in the configuration, the table of quotas and on the command line
  absl::string_view unit;  // "entries of switches"
  absl::string_view make_room;
};
// [Quota]
inline constexpr std::array<QuotaWords, kQuotas> kQuotaWords = {{
    {Quota::kEntries, "entries", "entries of switches", "release trees"},
    {Quota::kTrees, "trees", "trees", "release trees"},
    {Quota::kTreeRanks, "tree_ranks", "ranks of trees", "release trees"},
    {Quota::kJobs, "jobs", "active jobs", "end jobs that are done"},
    {Quota::kRanks, "ranks", "ranks of active jobs", "end jobs that are done"},
    {Quota::kNodes, "nodes", "placed nodes", "release placements, or end the jobs on them"},
    {Quota::kPatternBytes, "pattern_bytes", "bytes of patterns", "delete patterns"},
    {Quota::kSearches, "searches", "searches under way", "wait until one has ended"},
    {Quota::kKeptBytes, "kept_bytes", "bytes of ended jobs' ranks", ""},
    {Quota::kLeaseSeconds, "lease_seconds", "seconds of a lease or a term",
     "ask for a shorter one"},
    {Quota::kSwitchEntries, "switch_entries", "entries of one switch", "release trees"},
    {Quota::kPlannerSeconds, "planner_seconds", "seconds of the planner in an hour",
     "wait, as what was spent is forgotten with the hour"},
    {Quota::kWeight, "weight", "parts of what tenants share", ""},
}};
inline std::optional<Quota> FindQuota(absl::string_view name) {
  for (const QuotaWords& words : kQuotaWords) {
    if (words.name == name) return words.quota;
  }
  return std::nullopt;
}

// A number or, of what there is a whole of, a share of that.
struct QuotaLimit {
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  int64_t value = kNone;
  bool is_percent = false;
  friend bool operator==(const QuotaLimit&, const QuotaLimit&) = default;
};

struct QuotaOptions {
  std::array<QuotaLimit, kQuotas> of_user = {};  // [Quota]; who has no limit of his own
  // Percent of all entries, nodes, bytes of patterns, jobs and ranks of trees that ordinary users
  // together leave.
  int64_t left_to_administrators = 0;
  // The wholes that are nowhere else: ranks of granted trees and active jobs of all, and bytes of
  // ended jobs' ranks.
  int64_t all_tree_ranks = QuotaLimit::kNone, all_jobs = QuotaLimit::kNone,
          all_kept_bytes = QuotaLimit::kNone;
  friend bool operator==(const QuotaOptions&, const QuotaOptions&) = default;

  QuotaLimit& operator[](Quota quota) { return of_user[static_cast<size_t>(quota)]; }
  const QuotaLimit& operator[](Quota quota) const { return of_user[static_cast<size_t>(quota)]; }
};

// How placements are made and kept.
struct PlacementOptions {
  absl::Duration default_term = absl::Minutes(5);
  // Held at once: what a scheduler that never releases can take from others until terms end.
  uint32_t most_held = 10'000, most_held_per_owner = 5'000;
  PlacementObjective weights;  // of requests that give none; all 0: DefaultObjective()
};

// Infinite: never.
struct SweepPeriods {
  absl::Duration full = absl::InfiniteDuration();
  absl::Duration light = absl::InfiniteDuration();
  absl::Duration counters = absl::InfiniteDuration();
};

struct LoadOptions {
  // What was measured so long ago weighs 1/e of what is measured now.
  absl::Duration time_constant = absl::Seconds(60);
  // Symbol errors, receive errors and discards of a link, per minute, from which on they are told.
  double error_threshold = 10;
};

struct ManagerOptions {
  CostProfile profile;
  std::vector<CapabilityRule> capability_rules;  // the first that matches a switch wins
  absl::Duration default_lease = absl::Seconds(60);
  absl::Duration min_lease = kMinLease, max_lease = kMaxLease;
  // Infinite: full sweeps at start, on request and after changes only; no others.
  SweepPeriods sweep_periods;
  // Share of the time that a job with a tree is taken to be in its collective: how much of what the
  // collective puts on links is promised to others as load. 0: none.
  double promised_duty = 0.1;
  LoadOptions load;
  int64_t kept_events = 1'000'000;
  // Of one user in an hour that are told singly, so that none washes out the others'.
  int64_t events_per_user = 10'000;
  absl::Duration kept_event_age = absl::Hours(24 * 400);
  // Jobs that are over are forgotten, with their request_ids: all but the newest so many, and those
  // that ended longer ago.
  int64_t kept_ended_jobs = 100'000;
  absl::Duration kept_ended_job_age = absl::Hours(24 * 30);
  uint32_t max_job_ranks = kDefaultJobRanks;
  uint32_t max_trees_per_job = 100'000;
  uint32_t kept_tree_changes = 65'536;  // that a watch can resume within
  PlacementOptions placement;
  QuotaOptions quotas;
};

// The manager's options, of which some change while it runs: each look is at those in force, whole
// and immutable. Copies look at the same.
// Thread-safe. A lock of its own, under which nothing else is taken.
class LiveOptions {
 public:
  explicit LiveOptions(ManagerOptions options) : state_(std::make_shared<State>()) {
    Set(std::move(options));
  }

  std::shared_ptr<const ManagerOptions> operator->() const { return Get(); }
  std::shared_ptr<const ManagerOptions> Get() const {
    std::lock_guard lock(state_->mu);
    return state_->options;
  }
  void Set(ManagerOptions options) {
    auto next = std::make_shared<const ManagerOptions>(std::move(options));
    std::lock_guard lock(state_->mu);
    state_->options = std::move(next);
  }

 private:
  struct State {
    std::mutex mu;
    std::shared_ptr<const ManagerOptions> options;  // guarded by mu; never null
  };
  std::shared_ptr<State> state_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_OPTIONS_H_
