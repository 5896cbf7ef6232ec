#include "daemon/manager/plan_basis.h"

#include "absl/strings/str_cat.h"
#include "daemon/manager/tree_draft.h"

namespace coppice {

absl::StatusOr<PlanBasis> TakeBasis(Tables& tables, Job& job,
                                    std::vector<SwitchCapacity>& capacity) {
  PlanBasis basis;
  {
    std::lock_guard lock(tables.mu);
    if (tables.view == nullptr) return NoFabricError();
    basis = {tables.view, job.resolved, tables.profile};
    const absl::Span<const SwitchCapacity> free = tables.entries.capacity();
    capacity.assign(free.begin(), free.end());
  }
  const Fabric& fabric = *basis.view->snapshot->fabric;
  if (basis.endpoints == nullptr || basis.endpoints->fabric_version != fabric.version()) {
    basis.endpoints = ResolveAll(fabric, *job.record);
    std::lock_guard lock(tables.mu);
    job.resolved = basis.endpoints;
  }
  return basis;
}

absl::Status JobIsEnding(JobId id) {
  return absl::FailedPreconditionError(absl::StrCat(
      "job ", id.value(), " is ending; no tree can be granted to it, register a new job"));
}

}  // namespace coppice
