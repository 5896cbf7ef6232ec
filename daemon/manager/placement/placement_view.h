// What is asked of placements and what is answered, as plain structs with the names of nodes, where
// daemon/placement has indices of one fabric; and such a task as a request in indices.
#ifndef COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_VIEW_H_
#define COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_VIEW_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/fabric/fabric.h"
#include "daemon/manager/store_calls.h"
#include "daemon/placement/placement_request.h"
#include "daemon/placement/placer.h"
#include "db/store.h"

namespace coppice {

// Nodes are names of hosts, or lists of them (node_list.h).
struct PlacementTask {
  std::vector<std::string> candidates, include, avoid;
  PlacementConstraints constraints;  // but for its lists
  PlacementObjective objective;      // weighs nothing: as configured
  std::shared_ptr<const Pattern> pattern;
  std::string pattern_name;  // where the pattern is from; of the request's content
  uint32_t ranks_per_node = 1;
  uint32_t trees = 0;
  uint64_t seed = 1;
  absl::Duration budget;        // of a search with a pattern; zero: the default
  PartitionNum partition = {};  // whose full members the nodes are; 0: which the candidates share
  std::string account = {};     // that pays; empty: the owner's default one
};

struct CreatePlacementArgs {
  std::string request_id, display_name, owner;
  PlacementTask task;
  std::optional<absl::Duration> term;
  Actor actor = {};
};

// How a caller follows the planning; may be null. True: whoever asked has gone.
using PlacementCancelled = std::function<bool()>;

// A placement or, with an id of 0, advice. Immutable.
struct PlacementView {
  std::shared_ptr<const PlacementRecord> record;
  absl::Duration term_left;  // zero unless held
  std::string why_not;       // of advice: there is no placement, and why
};

struct StartPlacementArgs {
  PlacementId id;
  std::string request_id, display_name;  // display_name empty: the placement's
  uint32_t ranks_per_node = 0;           // 0: the placement's
  std::optional<absl::Duration> lease;
  bool arrange_ranks = false;
  Actor actor = {};
};

// Row by row over `nodes`.
struct NodeDistancesView {
  std::vector<std::string> nodes;
  std::vector<uint32_t> hops, levels;  // levels: 0 the node, 1 leaf switch, 2 pod, 3 beyond
};

// Key of a payload on RESOURCE_EXHAUSTED statuses: who holds what is wanted, one line each,
// "SUBJECT DESCRIPTION"; rpc turns it into a google.rpc.QuotaFailure.
inline constexpr char kHoldersPayload[] = "coppice/holders";

// A task in names as a request in indices of one fabric.

// Of one search, and of all the searches of one call.
inline constexpr absl::Duration kMaxBudget = absl::Minutes(1);
// Of all the searches of one call while others wait for it to take its nodes.
inline constexpr absl::Duration kMaxTurn = absl::Seconds(1);

// What the searches of one call share: planners are few, and others wait for them. Equal shares of
// what is left, none of them more than it asks for; what an attempt has used, the next one has not.
class CallBudget {
 public:
  explicit CallBudget(const Clock* clock, PlacementCancelled is_cancelled = nullptr)
      : clock_(clock),
        is_cancelled_(std::move(is_cancelled)),
        end_(clock->Monotonic() + kMaxBudget),
        latest_(end_ + kMaxBudget) {}

  // The searches from now on share no more than this.
  void LimitTo(absl::Duration most) { end_ = std::min(end_, clock_->Monotonic() + most); }
  // So many tasks with a pattern are to come.
  void BeginAttempt(size_t searches) { searches_ = searches; }
  // Of the next one.
  absl::Duration NextOf(const PlacementTask& task);
  bool IsCancelled() const { return is_cancelled_ && is_cancelled_(); }
  // CANCELLED; DEADLINE_EXCEEDED: what goes on beside the searches has taken as long again.
  absl::Status Check() const;

 private:
  const Clock* const clock_;
  const PlacementCancelled is_cancelled_;
  absl::Duration end_;           // of searches
  const absl::Duration latest_;  // of everything
  size_t searches_ = 0;
};

// What can be said without a fabric. INVALID_ARGUMENT: no nodes, a budget or numbers out of range.
absl::Status CheckTask(const PlacementTask& task);

// The hosts that a list of names or node lists means. INVALID_ARGUMENT: a list that cannot be read,
// one host twice (names it). NOT_FOUND: hosts that the fabric has not (names the first few).
// Messages begin with `field`.
absl::StatusOr<std::vector<HostIndex>> ReadNodes(const Fabric& fabric,
                                                 const std::vector<std::string>& names,
                                                 absl::string_view field);

// `weights` hold where the task gives none. Errors as ReadNodes.
absl::StatusOr<PlacementRequest> ReadTask(const Fabric& fabric, const PlacementTask& task,
                                          const PlacementObjective& weights);

// Of the content, for the fingerprint of a request; the pattern counts by name and totals.
uint64_t FingerprintOf(const CreatePlacementArgs& args);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PLACEMENT_PLACEMENT_VIEW_H_
