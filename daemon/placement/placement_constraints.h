// What the constraints of a request leave: those that contradict each other are refused by name,
// and what remains is the open hosts, leaf switch by leaf switch, that any answer is made of.
//
//     leaf switch   L0         L1         L2          F free and open, i of them to be included,
//     hosts         F F i h    F x F F    o h h h     h held, x to be avoided, o out
//     OpenLeaf      3 open, 1 required    3 open      none
#ifndef COPPICE_DAEMON_PLACEMENT_PLACEMENT_CONSTRAINTS_H_
#define COPPICE_DAEMON_PLACEMENT_PLACEMENT_CONSTRAINTS_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/placement/placement_index.h"
#include "daemon/placement/placement_request.h"

namespace coppice {

// A leaf switch that hosts may be taken of. A host is free if nobody holds it, or if the request
// names it as a candidate and no placement holds it, and it is not out.
struct OpenLeaf {
  uint32_t leaf = 0;
  uint32_t begin = 0;     // of its open hosts in OpenHosts::hosts, those to include first
  uint32_t open = 0;      // hosts that may be taken
  uint32_t most = 0;      // of them at once: not above what a leaf switch may give
  uint32_t required = 0;  // to be included
  uint32_t free = 0;      // free hosts, open or not
  uint32_t held = 0;      // by others; those that are out are neither free nor held
};

struct OpenHosts {
  std::vector<OpenLeaf> leaves;  // by number; open > 0
  std::vector<HostIndex> hosts;
  uint32_t free = 0;      // of the whole fabric
  uint32_t required = 0;  // hosts to be included

  absl::Span<const HostIndex> hosts_of(const OpenLeaf& leaf) const {
    return absl::MakeConstSpan(hosts).subspan(leaf.begin, leaf.open);
  }
};

// How many hosts of each leaf switch: (position in OpenHosts::leaves, count >= 1), by position.
using LeafCounts = std::vector<std::pair<uint32_t, uint32_t>>;

// INVALID_ARGUMENT: constraints that contradict each other whatever is free (names both), a host
// twice on one list, more hosts than the fabric has. O(hosts named + leaf switches).
absl::Status CheckConstraints(const PlacementIndex& index, const PlacementConstraints& constraints);

// INVALID_ARGUMENT: no set of this fabric's hosts meets the constraints, which are checked, even if
// all are free (says which constraint leaves how many). Costs what FindOpenHosts does: ask it when
// that finds nothing.
absl::Status CheckAgainstEmptyFabric(const PlacementIndex& index,
                                     const PlacementConstraints& constraints);

// `constraints` are checked. FAILED_PRECONDITION: a host to include is held, out or not a candidate
// (names it). RESOURCE_EXHAUSTED: too few hosts are free, or which constraint leaves too few and
// how many. O(hosts + leaf switches log).
absl::StatusOr<OpenHosts> FindOpenHosts(const PlacementIndex& index, const Occupancy& occupancy,
                                        const PlacementConstraints& constraints);

// A run of OpenHosts::leaves within which an answer must lie: those of a component, or of a pod if
// that is asked for. All runs with enough open hosts and all hosts to include.
struct OpenScope {
  uint32_t begin = 0, end = 0;
};
std::vector<OpenScope> FindScopes(const PlacementIndex& index, const OpenHosts& open,
                                  const PlacementConstraints& constraints);

// Counts that meet all constraints within the scope, large leaf switches first; nullopt if there
// are none. O(leaf switches log).
std::optional<LeafCounts> AnyCounts(const PlacementIndex& index, const OpenHosts& open,
                                    const OpenScope& scope,
                                    const PlacementConstraints& constraints);

// With hosts_per_leaf: how many hosts are on the last leaf switch.
inline uint32_t LastLeafHosts(const PlacementConstraints& c) {
  return (c.host_count - 1) % c.hosts_per_leaf + 1;
}

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PLACEMENT_CONSTRAINTS_H_
