// Granted trees follow the fabric: those that a published fabric no longer carries are planned anew
// on it or, failing that, revoked, and those whose routes moved get their new lengths.
//
//   published view --judge each tree, unlocked--> broken --plan, unlocked--> next revision
//                                                   |  \--cannot be planned--> revoked
//          moved, or lost by switches that are all there --> next revision, same tree
//        all of these --claim entries--> broken ones leave their switches --> installed
//          --> one ChangeTrees, durable --> tables, watchers, events --> old revisions removed
//                              a switch refused: that tree is undone, and planned again round it
//
//   tables settled on a fabric that was not looked at yet
//     --> each tree that is not as it was granted: what it takes now against a fresh plan
//     --> more than 5 % sooner: the fresh one is its next revision, else it stays
//
// Entries move in one step: the store never counts a tree twice, and memory, which claims what is
// taken beyond what is left, never counts fewer than the store. What is written was right when it
// was claimed. A tree that may only have lost what is hidden is kept for kPatience from the verdict
// on. Why, and what becomes of races: README.md.
#ifndef COPPICE_DAEMON_MANAGER_REPAIR_H_
#define COPPICE_DAEMON_MANAGER_REPAIR_H_

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/fabric/routes.h"
#include "daemon/manager/entry_ledger.h"
#include "daemon/manager/switches/switches.h"
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
  bool is_waited_for = false;  // a switch that carries it may be back in time
};

struct RepairPlan {
  enum class Fate : uint8_t { kReplanned, kMoved, kRevoked, kKept };  // kKept: not revoked yet
  struct Change {
    Fate fate = Fate::kRevoked;
    std::shared_ptr<GrantedTree> tree;
    std::shared_ptr<const TreeRecord> before;
    std::shared_ptr<const TreeRecord> after;  // the next revision; null: there is none
    std::string reason;
    TreePromise promise = {};  // of `after`, as is the next
    RouteKind route_kind = RouteKind::kShortestPath;
    // `after` before it was given to switches, for whoever gives it once more; null: it never was.
    std::shared_ptr<const TreeRecord> planned = nullptr;
  };
  std::vector<Change> changes;
  std::vector<EntryLedger::Claim> claims;  // what is taken beyond what these trees hold
};

// So many entries more are taken, and kept for others, than the switch has.
int64_t SurplusOf(const EntryUse& use);

// `after` in the place of `before`, of which it keeps what is not planned.
std::shared_ptr<const TreeRecord> NextRevision(const TreeRecord& before, TreeRecord after);

// What these changes take of each switch beyond what they leave there.
std::vector<EntryLedger::Claim> ClaimsOf(const RepairPlan& plan);

// Plans every case that is not unchanged; `profile` is what the cases were judged by. Where the
// subnet manager's routes still lead over what is gone a tree is planned over shortest paths of the
// links that are left (`survivors`: the view's snapshot with these), which is said in its reason: a
// repair waits for no routing. A tree that cannot be planned is revoked unless what it lacks may
// only be hidden (some node did not answer the sweep, and no member is gone for certain), or be the
// entries of switches that are waited for, and, asked then, `has_patience(tree)`. `avoided` serve
// no tree that is planned. ABORTED: `view` is not published any more. As a rule one to three plans
// of each broken tree; at most one more for each that is kept.
absl::StatusOr<RepairPlan> PlanRepair(Tables& tables, const std::shared_ptr<const FabricView>& view,
                                      const Snapshot& survivors, const CostProfile& profile,
                                      const std::vector<RepairCase>& cases,
                                      const SwitchInstaller& installer,
                                      const AvoidedSwitches& avoided,
                                      const std::function<bool(TreeId)>& has_patience);

// Thread-safe.
class Repair : private UseCase {
 public:
  // Rounds of one run: each failed one means that something else succeeded meanwhile.
  static constexpr int kMaxAttempts = 8;
  static constexpr absl::Duration kPatience = kUnseenPatience;

  explicit Repair(const UseCase& with) : UseCase(with) {}

  // Judges all trees if the published fabric is another than the last time, else those that entered
  // late and, if `swept`, those that were kept; returns when the outcome is durable. False: some
  // are still broken, because the store failed, others were always quicker, or patience is not at
  // its end; sweep again soon. Not from the store's thread.
  bool Run(bool swept);
  // From now until the first patience that is not at its end yet is; infinite: there is none.
  absl::Duration PatienceLeft();

  static constexpr double kWorthIt = 1.05;  // as soon, of the time that a tree takes now
  // A run stops after so long, so that nothing that has broken meanwhile waits; the rest is next.
  static constexpr absl::Duration kMaxReplanning = absl::Milliseconds(200);
  // Plans again what was mended in haste, one tree after the other, so that none counts on entries
  // that another has not left yet. Returns when what is worth it is durable. Nothing to do: O(1).
  void Replan();

 private:
  using Fate = RepairPlan::Fate;
  enum class Outcome : uint8_t { kDone, kAgain, kFailed };
  // What one round judges, as of one instant.
  struct Round {
    std::shared_ptr<const FabricView> view;
    std::shared_ptr<const CostProfile> profile;
    std::vector<RepairCase> cases;
    bool all = false;  // of the trees
  };

  Outcome RunOnce();
  Round Begin();
  void JudgeAll(Round& round);
  // What its switches do not carry any more is to be given to them once more; broken is it where
  // one of them has gone or has refused. What only moved stays as it is while a switch of it is
  // waited for: it could not be given its next revision, and would be without it for good.
  void JudgeCarriage(RepairCase& granted) const;
  // More trees take entries of one of its switches than that has: which of them stay it says.
  bool IsOverfull(const TreeRecord& record) const;
  // True: the tree is judged again when a switch speaks, or none is waited for.
  bool PutOff(const RepairCase& moved) const;
  // What is left in the plan is durable; again: it is not all of it.
  Outcome Carry(const Round& round, RepairPlan& plan);
  // Takes what is not as it was judged, or on its way out, from the plan. False: nothing was.
  bool DropOvertaken(RepairPlan& plan);
  bool DropLocked(RepairPlan& plan) const;
  // For what is not overtaken. False: the fabric or an entry is not as it was planned on.
  bool Claim(const Round& round, RepairPlan& plan);
  // What the plan takes is not kept from those who take it.
  bool LeavesKept(const RepairPlan& plan) const;
  // After some have left the plan and kept their entries. False: nothing is claimed any more.
  bool ClaimAgain(RepairPlan& plan);
  void Unclaim(const RepairPlan& plan);
  // Of all that were claimed for. What ended meanwhile has left its switches by now.
  void EndMoves();
  // What is broken leaves its switches, unless it is kept.
  void Abandon(const Round& round, const RepairPlan& plan);
  // The next revisions into their switches, with keys of their own. What is left in the plan is
  // there, or no switch is to carry it; again: a switch refused the others, or has gone. Failed:
  // the daemon is shutting down.
  Outcome Install(RepairPlan& plan);
  void Uninstall(const RepairPlan& plan);
  absl::Status Commit(const RepairPlan& plan);
  void EnterCommitted(const RepairPlan& plan, const absl::Status& status);
  void EndPatience(const Round& round, const RepairPlan& plan);
  void Announce(const Round& round, const RepairPlan& plan);
  void AnnounceOne(const Round& round, absl::string_view kind, absl::string_view what,
                   const std::vector<std::string>& trees);
  // With higher ids than `after`, by id: those that are not as they were granted.
  std::vector<RepairCase> Replannable(TreeId after, const FabricView& view) const;
  // The words for it if the tree was planned again.
  std::optional<std::string> Improve(const Round& round, RepairCase tree);
  // What the tree takes on the basis of a plan for its job; nullopt: it cannot be told.
  std::optional<double> PresentUs(const RepairCase& tree);

  std::vector<std::shared_ptr<GrantedTree>> moving_;  // guarded by the manager's lock

  std::mutex running_;  // one run at a time
  struct Patience {
    absl::Duration until;
    bool is_told = false;  // there is an event
  };
  // Guarded by running_.
  std::shared_ptr<const FabricView> judged_;  // the view by which all trees were judged last
  bool is_judged_ = false;                    // and with success
  Snapshot survivors_;  // of the view under judgement, with shortest paths for routes
  absl::flat_hash_map<TreeId, Patience> patience_;  // of the trees that are kept
  bool swept_ = false;
  // That refused in the last run: what is planned again for a gain goes round them, too, as a
  // revision that is refused costs the one before.
  AvoidedSwitches avoided_;
  std::shared_ptr<const Routes> looked_at_;  // the routes by which all trees were planned again
  std::shared_ptr<const Routes> looking_at_;
  TreeId last_;  // looked at by these
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_REPAIR_H_
