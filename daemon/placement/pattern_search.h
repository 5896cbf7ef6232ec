// Hosts and the order of a pattern's ranks on them together, where both are few: the proof that
// placements with a pattern have.
#ifndef COPPICE_DAEMON_PLACEMENT_PATTERN_SEARCH_H_
#define COPPICE_DAEMON_PLACEMENT_PATTERN_SEARCH_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/places.h"
#include "daemon/mapping/search_control.h"
#include "daemon/placement/placement_question.h"

namespace coppice {

// Hosts with an order of ranks on them.
struct PatternChoice {
  std::vector<HostIndex> hosts;
  double hosts_cost = 0;  // without traffic
  Mapping mapping;        // [rank] position in hosts
  double max_congestion = 0;
  double cost = std::numeric_limits<double>::infinity();
};

// How much work the search may do.
struct PatternLimits {
  uint32_t ranks = 8;
  uint64_t sets = 5'000;          // of hosts; 0: no search
  uint64_t branches = 3'000'000;  // a rank on a host, some tenths of a microsecond each
};

// Looks at all sets of open hosts that meet the constraints, and keeps in `best`, which is one of
// them with an order, whichever costs less with its best order than what is there. True: nothing is
// cheaper. False: too many for the limits, or ended by `control`; `best` is still an answer or what
// it was. The question's weight of traffic is above 0, its pattern has bytes.
absl::StatusOr<bool> SearchPatternExactly(const PlacementQuestion& question,
                                          const PatternLimits& limits, const SearchControl& control,
                                          PatternChoice& best);

// A pattern on a set of hosts as the mapping engine's question, and what its congestion costs a
// placement (placement_request.h: traffic).

// The places are the first ports of `hosts`, in this order; the objective is congestion. Errors as
// Places::OfEndpoints and PlaceDistances::Hops.
absl::StatusOr<MappingProblem> PatternProblem(const PlacementQuestion& question,
                                              absl::Span<const HostIndex> hosts);

// The term of the cost; proportional to the congestion. 0 for a pattern without bytes.
double TrafficOf(const PlacementQuestion& question, double max_congestion);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PATTERN_SEARCH_H_
