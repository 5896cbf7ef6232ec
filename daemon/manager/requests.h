// What is asked of the manager for jobs, trees and batches of trees, and what it answers. Values
// only; what can be judged of them without a fabric: tree_request.h.
#ifndef COPPICE_DAEMON_MANAGER_REQUESTS_H_
#define COPPICE_DAEMON_MANAGER_REQUESTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/fabric/routes.h"
#include "daemon/manager/deed_log.h"
#include "daemon/tree/batch/baseline.h"
#include "daemon/tree/batch/grid.h"
#include "daemon/tree/link_use.h"
#include "daemon/tree/tree_plan.h"
#include "daemon/tree/tree_spec.h"
#include "db/store.h"

namespace coppice {

// How the manager answers what has to be durable first.
template <class T>
using Callback = absl::AnyInvocable<void(absl::StatusOr<T>)>;

// --- Jobs ---

struct RegisterJobArgs {
  std::string request_id;
  std::string display_name;
  std::string owner;
  std::vector<std::string> endpoints;  // "host", "host/port" or port GUID; see ResolveEndpoint
  bool all_endpoints = false;
  std::optional<absl::Duration> lease;
  Actor actor = {};
};

struct JobView {
  std::shared_ptr<const JobRecord> record;
  absl::Duration lease_left;  // zero unless active
  uint32_t tree_count = 0;
  std::vector<uint32_t> lost_ranks = {};  // ascending: whose ports have gone from the fabric
};

// --- Trees ---

struct CreateTreeArgs : TreeSpec {
  JobId job;
  std::string request_id;
  std::vector<uint32_t> ranks;  // of the job; empty: all
  Actor actor = {};
};

// A granted tree or advice, immutable. `record` is complete for both; advice has id 0.
struct TreeView {
  std::shared_ptr<const TreeRecord> record;
  std::shared_ptr<const JobRecord> job;
  RouteKind route_kind = RouteKind::kShortestPath;
  BusiestLink busiest;                   // all zero before the first sweep
  std::vector<Tradeoff> tradeoffs = {};  // of advice, if asked for
};

// Key of a google.rpc.QuotaFailure payload on RESOURCE_EXHAUSTED statuses of CreateTree and
// BatchCreateTrees: one line per full switch, "GUID LIMIT USED DESCRIPTION"; rpc turns it into the
// message.
inline constexpr char kFullSwitchesPayload[] = "coppice/full-switches";

enum class TreeChangeKind : uint8_t {
  kPresent,  // was granted when the watch began
  kSynced,   // all that were have been told; no tree
  kGranted,
  kRevised,   // planned anew: the same id with the next revision
  kRevoked,   // could not be planned anew
  kReleased,  // by its job, or with it
};

struct TreeChange {
  TreeChangeKind kind = TreeChangeKind::kGranted;
  std::string resume_token;  // empty: of kPresent
  TreeView tree;             // as it is now; of what is gone, as it was last
  std::string reason;        // kRevised, kRevoked: what was lost, in words
};

// --- Batches ---

// Communicators of one job that are planned together: every line of a process grid, or lists.
struct CreateBatchArgs : CollectiveMix {
  JobId job;
  std::string request_id;
  std::optional<ProcessGrid> grid;
  std::vector<uint32_t> rank_order;  // of a grid: job rank of each cell; empty: cell r is rank r
  std::vector<std::vector<uint32_t>> communicators;  // without a grid: job ranks, none empty
  bool largest_part = false;                         // as many as fit; false: all or none
  bool accept_type1 = false;   // for a communicator that gets no tree of type II
  bool validate_only = false;  // plan, take nothing
  bool compare = false;        // with what one by one would take; only with validate_only
  BatchGoal goal = BatchGoal::kBoth;
  Actor actor = {};
};

// A batch beside what one by one would take, and what nothing can beat.
struct BatchComparison {
  struct Totals {
    BatchTotals numbers;
    std::string most_loaded;  // that channel in words; empty: none
  };
  Totals batch, one_by_one, unreduced;
  BatchBounds bounds;
};

// A granted batch or, with ids of 0, a planned one; immutable.
struct BatchView {
  struct Tree {
    uint32_t communicator = 0;
    TreeView view;
  };
  struct Refusal {
    uint32_t communicator = 0;
    std::string why_not;
  };
  uint32_t communicators = 0;
  std::vector<Tree> trees;        // by communicator
  std::vector<Refusal> refusals;  // by communicator: those without a tree
  // Messages on the most loaded channel in one reduction of every communicator, and that channel;
  // 0 and empty if no type II tree crosses one, or for a retry after a restart.
  uint32_t most_packets = 0;
  std::string most_loaded;
  uint64_t fabric_version = 0;
  std::optional<BatchComparison> comparison;  // if it was asked for
};

// How a caller follows a batch while it is planned. Both are called on the thread that plans, often
// and with no lock held; either may be null.
struct BatchWatch {
  enum class Phase : uint8_t { kPlanning, kImproving, kHangingRanks, kGranting };
  std::function<void(Phase phase, uint32_t done, uint32_t communicators)> progress;
  std::function<bool()> is_cancelled;  // true: whoever asked has gone
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_REQUESTS_H_
