// PlanRepair: what becomes of the trees that a new fabric has broken or moved.
#include <algorithm>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/promised_load.h"
#include "daemon/manager/repair.h"
#include "daemon/manager/switches/switches.h"
#include "daemon/manager/tree_draft.h"

namespace coppice {
namespace {

// Entries by switch as the trees of one repair leave and take them.
class Moves {
 public:
  void Leave(const TreeRecord& record, const std::string& tenant = "") {
    for (const TreeSwitchRecord& serving : record.switches) {
      ++by_switch_[serving.guid].left;
      --held_[{tenant, serving.guid}];
    }
  }
  void Take(const TreeRecord& record, const std::string& tenant = "") {
    for (const TreeSwitchRecord& serving : record.switches) {
      ++by_switch_[serving.guid].taken;
      ++held_[{tenant, serving.guid}];
    }
  }
  // By tenant, what its trees hold more once all is done.
  const HeldEntries::Changes& held() const { return held_; }
  // From what is free while all of them still hold theirs to what the next may use. Where more is
  // taken than there is, the first that leave make no room.
  void Apply(const Fabric& fabric, const EntryLedger& entries,
             std::vector<SwitchCapacity>& capacity) const {
    for (const auto& [guid, move] : by_switch_) {
      const std::optional<SwitchIndex> s = fabric.FindSwitch(guid);
      if (!s) continue;
      const int64_t free = int64_t{capacity[s->value()].entries_free} -
                           SurplusOf(entries.Use(guid)) + move.left - move.taken;
      const int64_t total = capacity[s->value()].entries_total;
      capacity[s->value()].entries_free =
          static_cast<uint32_t>(std::clamp<int64_t>(free, 0, total));
    }
  }
  std::vector<EntryLedger::Claim> Claims() const {
    std::vector<EntryLedger::Claim> claims;
    for (const auto& [guid, move] : by_switch_) {
      if (move.taken > move.left) claims.push_back({guid, move.taken - move.left});
    }
    return claims;
  }

 private:
  struct Move {
    uint32_t left = 0, taken = 0;
  };
  absl::btree_map<Guid, Move> by_switch_;
  HeldEntries::Changes held_;
};

// One member that is gone for certain is enough.
bool MayOnlySeemSo(const FabricView& view, const TreeStanding& standing) {
  if (view.unseen.silent.empty()) return false;
  return std::none_of(standing.lost_ports.begin(), standing.lost_ports.end(), [&](Guid port) {
    return HiddenSince(view.unseen, port) == absl::InfiniteDuration();
  });
}

// Plans the broken trees, as often as it takes until none counts on an entry of one that is kept.
class Planner {
 public:
  Planner(Tables& tables, const std::shared_ptr<const FabricView>& view, const Snapshot& survivors,
          const std::vector<RepairCase>& cases, const SwitchInstaller& installer,
          const AvoidedSwitches& avoided, const std::function<bool(TreeId)>& has_patience)
      : tables_(tables),
        view_(view),
        survivors_(survivors),
        cases_(cases),
        installer_(installer),
        avoided_(avoided),
        has_patience_(has_patience) {}

  // Adds to `plan`. Each further pass knows of more trees that are kept, so there is a last one.
  absl::Status PlanAll(RepairPlan& plan) {
    for (;;) {
      ASSIGN_OR_RETURN(const bool is_sound, PlanOnce(plan));
      if (is_sound) return absl::OkStatus();
      std::erase_if(plan.changes, [](const RepairPlan::Change& change) {
        return change.fate == Fate::kReplanned || change.fate == Fate::kRevoked;
      });
    }
  }

 private:
  using Fate = RepairPlan::Fate;

  bool IsOpen(const RepairCase& broken) const {
    return broken.standing.standing == Standing::kBroken && !kept_.contains(broken.record->id);
  }

  // False: a tree turned out to be kept after others were planned with its entries counted as free.
  absl::StatusOr<bool> PlanOnce(RepairPlan& plan) {
    moves_ = Moves();
    for (const RepairCase& broken : cases_) {
      if (IsOpen(broken)) moves_.Leave(*broken.record, TenantOf(broken));
    }
    bool is_sound = true, has_planned = false;
    for (const RepairCase& broken : cases_) {
      if (!IsOpen(broken)) continue;
      RouteKind route_kind = view_->snapshot->routes->kind();
      absl::StatusOr<TreeDraft> draft = Plan(broken, route_kind);
      if (absl::IsAborted(draft.status()) || absl::IsUnavailable(draft.status())) {
        return draft.status();
      }
      if (!draft.ok()) {
        const bool is_kept = GiveUp(broken, draft.status(), plan);
        if (is_kept && has_planned && !broken.record->switches.empty()) is_sound = false;
        continue;
      }
      has_planned = true;
      moves_.Take(draft->record, TenantOf(broken));
      plan.changes.push_back({Fate::kReplanned, broken.tree, broken.record,
                              NextRevision(*broken.record, std::move(draft->record)),
                              ReasonOf(broken, route_kind), std::move(draft->promise), route_kind});
    }
    return is_sound;
  }

  std::string TenantOf(const RepairCase& broken) const {
    return tables_.quotas.TenantOf(PayerOf(*broken.job->record));
  }
  bool IsCalledBack(const RepairCase& broken) const {
    std::lock_guard lock(tables_.mu);
    return tables_.called_back.contains(broken.record->id);
  }

  // One that goes is away in the ledger before the installer knows.
  bool LacksSwitch(const TreeRecord& record) const {
    if (record.carriage.key.empty()) return false;
    if (installer_.LacksSwitch(record)) return true;
    std::lock_guard lock(tables_.mu);
    return std::any_of(record.switches.begin(), record.switches.end(), [&](const auto& serving) {
      return tables_.entries.IsAway(serving.guid) && !installer_.HasGivenUp(serving.guid);
    });
  }

  // True: for a while the tree is kept, and its entries with it.
  bool GiveUp(const RepairCase& broken, const absl::Status& refusal, RepairPlan& plan) {
    const bool lacks_switches = lacks_switch_ && absl::IsResourceExhausted(refusal);
    const bool is_kept = (lacks_switches || MayOnlySeemSo(*view_, broken.standing)) &&
                         !IsCalledBack(broken) && has_patience_(broken.record->id);
    if (is_kept) {
      kept_.insert(broken.record->id);
      moves_.Take(*broken.record, TenantOf(broken));
    }
    plan.changes.push_back({is_kept ? Fate::kKept : Fate::kRevoked, broken.tree, broken.record,
                            nullptr, absl::StrCat(broken.standing.lost, "; ", refusal.message())});
    return is_kept;
  }

  std::string ReasonOf(const RepairCase& broken, RouteKind route_kind) const {
    if (route_kind == view_->snapshot->routes->kind()) return broken.standing.lost;
    return absl::StrCat(broken.standing.lost, kOverLinks);
  }

  // ABORTED: the view is not published any more. Other errors: no tree; in words. `route_kind`
  // becomes that of the routes that the plan counts on.
  absl::StatusOr<TreeDraft> Plan(const RepairCase& broken, RouteKind& route_kind) {
    lacks_switch_ = broken.is_waited_for || LacksSwitch(*broken.record);
    ASSIGN_OR_RETURN(PlanBasis basis, TakeBasis(tables_, *broken.job, scratch_.capacity));
    lacks_switch_ |= LacksSwitch(*broken.record);  // one that came or went in between
    if (basis.view->snapshot->fabric != view_->snapshot->fabric) {
      return absl::AbortedError("another fabric was published");
    }
    {
      std::lock_guard lock(tables_.mu);
      moves_.Apply(*view_->snapshot->fabric, tables_.entries, scratch_.capacity);
    }
    Avoid(*view_->snapshot->fabric, avoided_, scratch_.capacity);
    LeaveKept({tables_.quotas, &moves_.held()},
              IsCalledBack(broken) ? KeptEntries::Asker::kCalledBack : KeptEntries::Asker::kRepair,
              basis, scratch_.capacity);
    absl::StatusOr<TreeDraft> draft = PlanOn(basis, broken);
    const bool may_be_routed =
        route_kind == RouteKind::kForwardingTables && broken.standing.lost_ports.empty();
    if (draft.ok() || !may_be_routed || IsOfPartition(draft.status())) return draft;
    basis.snapshot.routes = survivors_.routes;
    absl::StatusOr<TreeDraft> without_tables = PlanOn(basis, broken);
    if (!without_tables.ok()) return draft;
    absl::StrAppend(&without_tables->record.reason, kOverLinks);
    route_kind = survivors_.routes->kind();
    return without_tables;
  }

  absl::StatusOr<TreeDraft> PlanOn(const PlanBasis& basis, const RepairCase& broken) {
    const TreeRecord& record = *broken.record;
    CreateTreeArgs args;
    static_cast<TreeSpec&>(args) = record.spec;
    args.job = record.job;
    args.ranks = record.ranks;
    std::vector<RefusedSwitch> full;
    absl::StatusOr<TreeDraft> draft = DraftTree(basis, *broken.job->record, args, scratch_, full);
    if (draft.ok() || !record.accepts_type1 || absl::IsFailedPrecondition(draft.status())) {
      return draft;
    }
    args.type = TreeType::kTypeI;
    return DraftTree(basis, *broken.job->record, args, scratch_, full);
  }

  Tables& tables_;
  const std::shared_ptr<const FabricView>& view_;
  const Snapshot& survivors_;
  const std::vector<RepairCase>& cases_;
  const SwitchInstaller& installer_;
  const AvoidedSwitches& avoided_;
  const std::function<bool(TreeId)>& has_patience_;
  absl::flat_hash_set<TreeId> kept_;
  Moves moves_;
  bool lacks_switch_ = false;  // when the last plan was made, the tree that it was for
  DraftScratch scratch_;
};

// What stands, on other routes or to be given to its switches once more, with what it promises
// there: one counter for all, without the lock.
void AddMoved(const FabricView& view, const Snapshot& survivors, const CostProfile& profile,
              double duty, const std::vector<RepairCase>& cases, RepairPlan& plan) {
  LinkUseCounter counter;
  for (const RepairCase& granted : cases) {
    if (granted.standing.standing != Standing::kMoved) continue;
    const std::shared_ptr<const TreeRecord>& moved = granted.standing.moved;
    const RouteKind route_kind = granted.standing.route_kind;
    const bool is_routed = route_kind == view.snapshot->routes->kind();
    const bool is_lost = !granted.standing.lost.empty();
    plan.changes.push_back(
        {is_lost ? RepairPlan::Fate::kReplanned : RepairPlan::Fate::kMoved, granted.tree,
         granted.record, moved,
         is_lost     ? granted.standing.lost
         : is_routed ? "routes moved"
                     : "routes broken; lengths are those of shortest paths until the forwarding "
                       "tables lead there again",
         PromiseOfRecord(is_routed ? *view.snapshot : survivors, *view.link_ids, profile, duty,
                         *granted.job->record, *moved, counter),
         route_kind});
  }
}

}  // namespace

int64_t SurplusOf(const EntryUse& use) {
  const CapabilityRecord& capability = use.capability;
  return std::max<int64_t>(
      int64_t{use.entries_taken} + capability.entries_reserved - int64_t{capability.entries_total},
      0);
}

std::shared_ptr<const TreeRecord> NextRevision(const TreeRecord& before, TreeRecord after) {
  after.id = before.id;
  after.request_id = before.request_id;
  after.request_fingerprint = before.request_fingerprint;
  after.revision = before.revision + 1;
  after.spec = before.spec;
  after.accepts_type1 = before.accepts_type1;
  after.lacks_spec = before.lacks_spec;
  after.created = before.created;
  return std::make_shared<const TreeRecord>(std::move(after));
}

std::vector<EntryLedger::Claim> ClaimsOf(const RepairPlan& plan) {
  Moves moves;
  for (const RepairPlan::Change& change : plan.changes) {
    if (change.fate != RepairPlan::Fate::kKept) moves.Leave(*change.before);
    if (change.after != nullptr) moves.Take(*change.after);
  }
  return moves.Claims();
}

absl::StatusOr<RepairPlan> PlanRepair(Tables& tables, const std::shared_ptr<const FabricView>& view,
                                      const Snapshot& survivors, const CostProfile& profile,
                                      const std::vector<RepairCase>& cases,
                                      const SwitchInstaller& installer,
                                      const AvoidedSwitches& avoided,
                                      const std::function<bool(TreeId)>& has_patience) {
  RepairPlan plan;
  double duty = 0;
  {
    std::lock_guard lock(tables.mu);
    duty = tables.promised_duty;
  }
  RETURN_IF_ERROR(
      Planner(tables, view, survivors, cases, installer, avoided, has_patience).PlanAll(plan));
  AddMoved(*view, survivors, profile, duty, cases, plan);
  plan.claims = ClaimsOf(plan);
  return plan;
}

}  // namespace coppice
