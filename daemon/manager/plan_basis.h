// What one attempt at a tree, or at many, plans on: everything as of one instant, so that a plan
// that turns out to be stale is stale as a whole.
#ifndef COPPICE_DAEMON_MANAGER_PLAN_BASIS_H_
#define COPPICE_DAEMON_MANAGER_PLAN_BASIS_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

// What every grant answers for a job whose end has begun.
absl::Status JobIsEnding(JobId id);

}  // namespace coppice

#endif  // COPPICE_DAEMON_MANAGER_PLAN_BASIS_H_
