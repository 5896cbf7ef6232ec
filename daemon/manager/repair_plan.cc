#include "daemon/manager/repair_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/manager/demands.h"
#include "daemon/manager/tree_draft.h"

namespace coppice {
namespace {

// Entries by switch as the trees of one repair leave and take them.
class Moves {
 public:
  void Leave(const TreeRecord& record) {
    for (const TreeSwitchRecord& serving : record.switches) ++by_switch_[serving.guid].left;
  }
  void Take(const TreeRecord& record) {
    for (const TreeSwitchRecord& serving : record.switches) ++by_switch_[serving.guid].taken;
  }
  // From what is free while all of them still hold theirs to what the next may use.
  void Apply(const Fabric& fabric, std::vector<SwitchCapacity>& capacity) const {
    for (const auto& [guid, move] : by_switch_) {
      const std::optional<SwitchIndex> s = fabric.FindSwitch(guid);
      if (!s) continue;
      const int64_t free = int64_t{capacity[s->value()].entries_free} + move.left - move.taken;
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
};

class Planner {
 public:
  Planner(Tables& tables, const std::shared_ptr<const FabricView>& view)
      : tables_(tables), view_(view) {}

  Moves& moves() { return moves_; }

  // ABORTED: the view is not published any more. Other errors: no tree; in words.
  absl::StatusOr<TreeDraft> Plan(const RepairCase& broken) {
    ASSIGN_OR_RETURN(const PlanBasis basis, TakeBasis(tables_, *broken.job, scratch_.capacity));
    if (basis.view->snapshot != view_->snapshot) {
      return absl::AbortedError("another fabric was published");
    }
    moves_.Apply(*view_->snapshot->fabric, scratch_.capacity);
    RecordedRequest request = RequestOf(*broken.record);
    std::vector<RefusedSwitch> full;
    absl::StatusOr<TreeDraft> draft =
        DraftTree(basis, *broken.job->record, request.args, scratch_, full);
    if (draft.ok() || !request.accepts_type1 || absl::IsFailedPrecondition(draft.status())) {
      return draft;
    }
    request.args.type = TreeType::kTypeI;
    return DraftTree(basis, *broken.job->record, request.args, scratch_, full);
  }

 private:
  Tables& tables_;
  const std::shared_ptr<const FabricView>& view_;
  Moves moves_;
  DraftScratch scratch_;
};

bool MayOnlySeemSo(const FabricView& view, const TreeStanding& standing,
                   const absl::Status& refusal) {
  if (!view.unanswered.empty()) return true;
  return view.snapshot->routes->kind() == RouteKind::kForwardingTables &&
         absl::IsFailedPrecondition(refusal) && !standing.has_lost_rank;
}

std::shared_ptr<const TreeRecord> NextRevision(const TreeRecord& before, TreeRecord after) {
  after.id = before.id;
  after.request_id = before.request_id;
  after.request_fingerprint = before.request_fingerprint;
  after.revision = before.revision + 1;
  after.operation = before.operation;
  after.sizes = before.sizes;
  after.demands = before.demands;
  after.created = before.created;
  return std::make_shared<const TreeRecord>(std::move(after));
}

}  // namespace

absl::StatusOr<RepairPlan> PlanRepair(Tables& tables, const std::shared_ptr<const FabricView>& view,
                                      const std::vector<RepairCase>& cases,
                                      const std::function<bool(TreeId)>& has_patience) {
  RepairPlan plan;
  plan.route_kind = view->snapshot->routes->kind();
  Planner planner(tables, view);
  for (const RepairCase& broken : cases) {
    if (broken.standing.standing == Standing::kBroken) planner.moves().Leave(*broken.record);
  }
  for (const RepairCase& broken : cases) {
    if (broken.standing.standing == Standing::kMoved) {
      plan.revised.push_back({broken.tree, broken.record, broken.standing.moved, TreePromise(),
                              "routes moved", false});
    }
    if (broken.standing.standing != Standing::kBroken) continue;
    absl::StatusOr<TreeDraft> draft = planner.Plan(broken);
    if (absl::IsAborted(draft.status()) || absl::IsUnavailable(draft.status())) {
      return draft.status();
    }
    if (!draft.ok()) {
      const bool is_kept =
          MayOnlySeemSo(*view, broken.standing, draft.status()) && has_patience(broken.record->id);
      if (is_kept) planner.moves().Take(*broken.record);
      plan.revoked.push_back({broken.tree, broken.record,
                              absl::StrCat(broken.standing.lost, "; ", draft.status().message()),
                              is_kept});
      continue;
    }
    planner.moves().Take(draft->record);
    plan.revised.push_back({broken.tree, broken.record,
                            NextRevision(*broken.record, std::move(draft->record)),
                            std::move(draft->promise), broken.standing.lost, true});
  }
  plan.claims = planner.moves().Claims();
  return plan;
}

}  // namespace coppice
