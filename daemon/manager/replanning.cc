#include "daemon/manager/replanning.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "daemon/manager/repair_plan.h"
#include "daemon/manager/tree_draft.h"
#include "daemon/manager/tree_record.h"
#include "daemon/tree/contended_metrics.h"
#include "daemon/tree/link_use.h"
#include "daemon/tree/tree_metrics.h"

namespace coppice {

void Replanning::Run() {
  std::lock_guard running(repair_->running_);
  Repair::Round round;
  {
    std::lock_guard lock(tables_->mu);
    round.view = tables_->view;
    round.profile = tables_->profile;
  }
  if (round.view == nullptr || !round.view->routes_settled) return;
  const std::shared_ptr<const Routes>& routes = round.view->snapshot->routes;
  if (looked_at_ == routes) return;
  if (looking_at_ != routes) last_ = TreeId();
  looking_at_ = routes;
  const absl::Duration end = clock_->Monotonic() + kLongest;
  std::vector<std::string> replanned;
  bool is_done = true;
  for (RepairCase& tree : Candidates(last_, *round.view)) {
    if (clock_->Monotonic() >= end) {
      is_done = false;
      break;
    }
    last_ = tree.record->id;
    if (auto words = Improve(round, std::move(tree))) replanned.push_back(*std::move(words));
  }
  if (is_done) {
    looked_at_ = routes;
  } else {
    std::lock_guard lock(tables_->mu);
    if (tables_->on_stale) tables_->on_stale();
  }
  repair_->AnnounceOne(round, "trees.replanned", "planned again for a gain", replanned);
}

// By id. A tree whose revision is the first is as it was granted.
std::vector<RepairCase> Replanning::Candidates(TreeId after, const FabricView& view) const {
  std::vector<RepairCase> candidates;
  const RouteKind kind = view.snapshot->routes->kind();
  std::lock_guard lock(tables_->mu);
  for (auto& tree : tables_->trees.List(nullptr, after, tables_->trees.size())) {
    if (tree->record->revision <= 1 || tree->releasing || tree->job->ending) continue;
    if (tree->route_kind.value_or(kind) != kind) continue;  // to be judged first
    candidates.push_back({tree, tree->record, tree->job, tree->route_kind, {}});
  }
  return candidates;
}

std::optional<std::string> Replanning::Improve(const Repair::Round& round, RepairCase tree) {
  const std::optional<double> present_us = PresentUs(tree);
  if (!present_us) return std::nullopt;
  tree.standing.standing = Standing::kBroken;  // as a repair plans it: with its own entries free
  absl::StatusOr<RepairPlan> plan =
      PlanRepair(*tables_, round.view, *round.view->snapshot, *round.profile, {tree},
                 [](TreeId) { return false; });
  if (!plan.ok() || plan->revised.size() != 1) return std::nullopt;
  RepairPlan::Revised& revised = plan->revised.front();
  const double fresh_us = revised.after->total_us;
  if (revised.route_kind != round.view->snapshot->routes->kind() ||
      fresh_us * kWorthIt > *present_us) {
    return std::nullopt;
  }
  revised.reason = absl::StrFormat("planned again: %.2f us instead of %.2f", fresh_us, *present_us);
  std::string words = absl::StrCat(tree.record->id.value(), " (", revised.reason, ")");
  if (repair_->Carry(round, *plan) != Repair::Outcome::kDone) return std::nullopt;
  return words;
}

std::optional<double> Replanning::PresentUs(const RepairCase& tree) {
  std::vector<SwitchCapacity> capacity;
  const absl::StatusOr<PlanBasis> basis = TakeBasis(*tables_, *tree.job, capacity);
  if (!basis.ok()) return std::nullopt;
  const CostProfile& profile = *basis->profile;
  const Snapshot predicting = ForPrediction(basis->snapshot, profile);
  const AggregationTree placed = PlaceTree(*predicting.fabric, *tree.job->record, *tree.record);
  for (const VertexIndex vertex : placed.vertices) {
    if (vertex == kGoneVertex) return std::nullopt;
  }
  const absl::StatusOr<std::vector<EdgeCost>> edges = EdgeCosts(predicting, profile, placed);
  if (!edges.ok()) return std::nullopt;
  const CollectiveMix& mix = tree.record->spec;
  Prediction predicted = EvaluateMix(profile, placed, *edges, mix);
  if (!AddContention(predicting, profile, placed, *edges, mix, predicted).ok()) {
    return std::nullopt;
  }
  return predicted.total_us;
}

}  // namespace coppice
