// What becomes of the trees that a new fabric has broken or moved: planned one after another on
// that fabric, each as it was asked for, with the entries of all of them counted as free and those
// of the ones before it as taken. One that is kept keeps its entries: if some were given away
// before that turned out, the others are planned again without them. Takes no entry and writes
// nothing; what it returns may be stale, and the caller checks that.
#ifndef COPPICE_DAEMON_MANAGER_REPAIR_PLAN_H_
#define COPPICE_DAEMON_MANAGER_REPAIR_PLAN_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/manager/ledgers.h"
#include "daemon/manager/tables.h"
#include "daemon/manager/tree_record.h"

namespace coppice {

// A granted tree under judgement.
struct RepairCase {
  std::shared_ptr<GrantedTree> tree;         // its fields under the manager's lock only
  std::shared_ptr<const TreeRecord> record;  // that is judged
  std::shared_ptr<Job> job;
  std::optional<RouteKind> route_kind;  // of the routes that its lengths are of; nullopt: not known
  TreeStanding standing;
};

struct RepairPlan {
  enum class Fate : uint8_t { kReplanned, kMoved, kRevoked, kKept };  // kKept: not revoked yet
  struct Change {
    Fate fate = Fate::kRevoked;
    std::shared_ptr<GrantedTree> tree;
    std::shared_ptr<const TreeRecord> before,
        after;  // after: the next revision; null: there is none
    std::string reason;
    TreePromise promise = {};  // of `after`, as is the next
    RouteKind route_kind = RouteKind::kShortestPath;
  };
  std::vector<Change> changes;
  std::vector<EntryLedger::Claim> claims;  // what is taken beyond what these trees hold
};

// What these changes take of each switch beyond what they leave there.
std::vector<EntryLedger::Claim> ClaimsOf(const RepairPlan& plan);

// Plans every case that is not unchanged; `profile` is what the cases were judged by. Where the
// subnet manager's routes still lead over what is gone a tree is planned over shortest paths of the
// links that are left (`survivors`: the view's snapshot with these), which is said in its reason: a
// repair waits for no routing. A tree that cannot be planned is revoked unless what it lacks may
// only be hidden (some node did not answer the sweep, and no member is gone for certain) and, asked
// then, `has_patience(tree)`. ABORTED: `view` is not published any more. As a rule one to three
// plans of each broken tree; at most one more for each that is kept.
absl::StatusOr<RepairPlan> PlanRepair(Tables& tables, const std::shared_ptr<const FabricView>& view,
                                      const Snapshot& survivors, const CostProfile& profile,
                                      const std::vector<RepairCase>& cases,
                                      const std::function<bool(TreeId)>& has_patience);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_REPAIR_PLAN_H_
