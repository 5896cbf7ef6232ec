#include "daemon/manager/plan_basis.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/manager/tree_draft.h"

namespace coppice {

absl::StatusOr<PlanBasis> TakeBasis(Tables& tables, Job& job,
                                    std::vector<SwitchCapacity>& capacity) {
  PlanBasis basis;
  {
    std::lock_guard lock(tables.mu);
    if (tables.view == nullptr) return NoFabricError();
    basis.view = tables.view;
    basis.snapshot.load = tables.load.CurrentFor(job.record->id);
    basis.endpoints = job.resolved;
    basis.profile = tables.profile;
    basis.promised_duty = tables.promised_duty;
    const absl::Span<const SwitchCapacity> free = tables.entries.capacity();
    capacity.assign(free.begin(), free.end());
  }
  std::shared_ptr<const LinkLoad> load = std::move(basis.snapshot.load);
  basis.snapshot = *basis.view->snapshot;
  basis.snapshot.load = std::move(load);
  const Fabric& fabric = *basis.snapshot.fabric;
  if (basis.endpoints == nullptr || basis.endpoints->fabric_version != fabric.version()) {
    basis.endpoints = ResolveAll(fabric, *job.record);
    std::lock_guard lock(tables.mu);
    job.resolved = basis.endpoints;
  }
  return basis;
}

bool AreTablesBehind(const PlanBasis& basis) {
  return basis.snapshot.routes->kind() == RouteKind::kForwardingTables &&
         !basis.view->routes_settled;
}

bool MayLackRoutes(const absl::Status& refusal) {
  return absl::IsFailedPrecondition(refusal) || absl::IsNotFound(refusal);
}

PlanBasis OverLinks(Tables& tables, PlanBasis basis) {
  basis.snapshot.routes = ShortestPathsOf(tables, basis.snapshot.fabric);
  return basis;
}

std::shared_ptr<const Routes> ShortestPathsOf(Tables& tables,
                                              const std::shared_ptr<const Fabric>& fabric) {
  {
    std::lock_guard lock(tables.mu);
    const std::shared_ptr<const Routes>& kept = tables.shortest_paths;
    if (kept != nullptr && &kept->fabric() == fabric.get()) return kept;
  }
  std::shared_ptr<const Routes> routes = Routes::ShortestPaths(fabric);
  std::lock_guard lock(tables.mu);
  tables.shortest_paths = routes;
  return routes;
}

absl::Status JobIsEnding(JobId id) {
  return absl::FailedPreconditionError(absl::StrCat(
      "job ", id.value(), " is ending; no tree can be granted to it, register a new job"));
}

}  // namespace coppice
