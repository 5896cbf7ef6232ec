// One attempt at a tree, or at a batch of them: from a request, a job's endpoints and a copy of the
// entries that were free to a record that still has no id. Takes no lock and no entry: what it
// returns may be stale by the time it returns, and the caller checks that.
#ifndef COPPICE_DAEMON_MANAGER_TREE_DRAFT_H_
#define COPPICE_DAEMON_MANAGER_TREE_DRAFT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/manager/fabric_view.h"
#include "daemon/manager/promised_load.h"
#include "daemon/manager/quota_ledger.h"
#include "daemon/manager/requests.h"
#include "daemon/manager/tables.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

// What one attempt plans on: everything as of one instant, so that a plan that turns out to be
// stale is stale as a whole.
struct PlanBasis {
  std::shared_ptr<const FabricView> view;  // none of the three is ever null
  Snapshot snapshot;                       // the view's, with the load promised as well
  std::shared_ptr<const JobPorts> ports;   // of the job, in that view's fabric
  std::shared_ptr<const CostProfile> profile;
  double promised_duty = 0;
  uint32_t barred_switches = 0;             // that have entries, but not for the job's partition
  std::vector<SwitchIndex> spent_switches;  // that have entries, but none under the job's quotas
  std::shared_ptr<const KeptEntries> kept;
  std::string tenant;                      // that pays for the job
  std::vector<SwitchIndex> kept_switches;  // whose free entries are all kept from it
};

// Copies what planners may use of the entries to `capacity`, memory that callers reuse: nothing of
// switches that are not in the job's partition. Remembers the job's ports for the next attempt.
// UNAVAILABLE: no fabric yet. O(switches), and O(ranks) for the first attempt of a job on a fabric.
absl::StatusOr<PlanBasis> TakeBasis(Tables& tables, Job& job,
                                    std::vector<SwitchCapacity>& capacity);

// Takes from `capacity` what reservations keep from the job, as KeptEntries::Apply.
void LeaveKept(const HeldEntries& held, KeptEntries::Asker asker, PlanBasis& basis,
               std::vector<SwitchCapacity>& capacity);

// --- While the forwarding tables are behind the links ---
// A subnet manager takes 5 to 18 s to route around a change. What its tables refuse meanwhile is
// planned over shortest paths of the links that are there, and judged again as the tables follow.

// Whether that holds of the basis: its tables have just changed, or lead over what is gone.
bool AreTablesBehind(const PlanBasis& basis);
// Whether a refusal may be for want of routes.
bool MayLackRoutes(const absl::Status& refusal);
// The same instant with those shortest paths for routes.
PlanBasis OverLinks(Tables& tables, PlanBasis basis);
// Shortest paths of that fabric, whatever its tables say. Kept for the next who asks.
std::shared_ptr<const Routes> ShortestPathsOf(Tables& tables,
                                              const std::shared_ptr<const Fabric>& fabric);
// Ends the reason of a tree that was planned so, until tables lead there.
inline constexpr absl::string_view kOverLinks =
    "; over shortest paths of the links that are there, as the forwarding tables do not lead there "
    "yet";

// Memory that one attempt after another may reuse.
struct DraftScratch {
  std::vector<SwitchCapacity> capacity;  // [switch] of the snapshot that is planned on
  TreeRequest request;
  std::vector<uint64_t> rank_marks;
  LinkUseCounter links;
};

struct TreeDraft {
  TreeRecord record;                  // without ids and time
  std::vector<SwitchIndex> switches;  // that serve, in the snapshot
  TreePromise promise;
  std::vector<Tradeoff> tradeoffs;
};

// Plans on the basis with scratch.capacity. Errors: INVALID_ARGUMENT (ranks; width, degree);
// NOT_FOUND (the root switch); FAILED_PRECONDITION (a member is not in the fabric or not in the
// job's partition, members cannot reach each other or may not speak); RESOURCE_EXHAUSTED (with
// kFullSwitchesPayload). `full` gets the switches that kept type II away, also where the type is
// free and the tree is of type I therefore.
absl::StatusOr<TreeDraft> DraftTree(const PlanBasis& basis, const JobRecord& job,
                                    const CreateTreeArgs& args, DraftScratch& scratch,
                                    std::vector<RefusedSwitch>& full);

// One line of kFullSwitchesPayload.
std::string FullSwitchLine(const SwitchInfo& info, const SwitchCapacity& capacity);

// The record and promise of a plan that was made for scratch.request, as `args` asked for it.
// NOT_FOUND: an edge without a route. FAILED_PRECONDITION: a switch on the way keeps the partition
// out.
absl::StatusOr<TreeDraft> DraftOfPlan(const PlanBasis& basis, const JobRecord& job,
                                      const CreateTreeArgs& args, TreePlan plan,
                                      DraftScratch& scratch);

// --- Batches: the same from lists of ranks ---
// What the job's owner may still have. Where only a part is granted, or type I does as well, the
// draft stays within; else all of it is drafted, and refused as a whole when it is taken.
struct BatchRoom {
  QuotaAmounts left;
  // In words, why so many more are too many.
  std::function<std::string(Quota quota, int64_t more)> why_not = {};
};

struct BatchDraft {
  std::vector<TreeDraft> trees;  // by communicator
  BatchView view;                // the answer, without views of the trees
  BatchRoom room;                // that there was
};

// Type II for every communicator that can have it, type I where that is accepted; where there is
// room for some only, trees of few entries come first, so that most communicators get one. Errors,
// all of which name the communicator: FAILED_PRECONDITION (unless args.largest_part: a member is
// not in the fabric, or two cannot reach each other); RESOURCE_EXHAUSTED (unless args.largest_part:
// some do not fit; with kFullSwitchesPayload); CANCELLED (by watch.is_cancelled). `full` gets the
// switches that kept a tree of type II away, also if the draft is an error.
absl::StatusOr<BatchDraft> DraftBatch(const PlanBasis& basis, const JobRecord& job,
                                      const CreateBatchArgs& args,
                                      absl::Span<const SwitchCapacity> capacity,
                                      const BatchRoom& room, const BatchWatch& watch,
                                      std::vector<RefusedSwitch>& full);

absl::Status BatchIsCancelled();

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_TREE_DRAFT_H_
