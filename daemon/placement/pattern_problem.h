// A pattern on a set of hosts as the mapping engine's question, and what its congestion costs a
// placement (placement_cost.h: traffic).
#ifndef COPPICE_DAEMON_PLACEMENT_PATTERN_PROBLEM_H_
#define COPPICE_DAEMON_PLACEMENT_PATTERN_PROBLEM_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/placement/placement_question.h"

namespace coppice {

// The places are the first ports of `hosts`, in this order; the objective is congestion. Errors as
// Places::OfEndpoints and PlaceDistances::Hops.
absl::StatusOr<MappingProblem> PatternProblem(const PlacementQuestion& question,
                                              absl::Span<const HostIndex> hosts);

// The term of the cost; proportional to the congestion. 0 for a pattern without bytes.
double TrafficOf(const PlacementQuestion& question, double max_congestion);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PATTERN_PROBLEM_H_
