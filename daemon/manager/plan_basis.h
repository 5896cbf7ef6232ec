// What one attempt at a tree, or at many, plans on: everything as of one instant, so that a plan
// that turns out to be stale is stale as a whole.
#ifndef COPPICE_DAEMON_MANAGER_PLAN_BASIS_H_
#define COPPICE_DAEMON_MANAGER_PLAN_BASIS_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/manager/tables.h"
#include "daemon/tree/planner.h"

namespace coppice {

struct PlanBasis {
  std::shared_ptr<const FabricView> view;              // none of the three is ever null
  Snapshot snapshot;                                   // the view's, with the load promised as well
  std::shared_ptr<const ResolvedEndpoints> endpoints;  // of the job, in that view's fabric
  std::shared_ptr<const CostProfile> profile;
  double promised_duty = 0;
};

// Copies what planners may use of the entries to `capacity`, memory that callers reuse. Remembers
// the job's endpoints for the next attempt. UNAVAILABLE: no fabric yet. O(switches), and O(ranks)
// for the first attempt of a job on a fabric.
absl::StatusOr<PlanBasis> TakeBasis(Tables& tables, Job& job,
                                    std::vector<SwitchCapacity>& capacity);

// What every grant answers for a job whose end has begun.
absl::Status JobIsEnding(JobId id);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PLAN_BASIS_H_
