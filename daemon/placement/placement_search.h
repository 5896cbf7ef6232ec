// The searches behind Place, and the question that they answer. Stage one: a set of hosts that
// costs little, with proof that none costs less where there is one. Stage two: which of the sets of
// hosts suits a pattern best, and the order of its ranks there.
#ifndef COPPICE_DAEMON_PLACEMENT_PLACEMENT_SEARCH_H_
#define COPPICE_DAEMON_PLACEMENT_PLACEMENT_SEARCH_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/mapping/mapping_problem.h"
#include "daemon/mapping/places.h"
#include "daemon/mapping/search_control.h"
#include "daemon/placement/placement_constraints.h"
#include "daemon/placement/placement_metrics.h"
#include "daemon/placement/placer.h"

namespace coppice {

// Never longer-lived than what it refers to.
struct PlacementQuestion {
  const Snapshot& snapshot;
  const PlacementIndex& index;
  const Occupancy& occupancy;
  const PlacementRequest& request;
  const OpenHosts& open;

  PlacementMeasures Measure(absl::Span<const HostIndex> hosts) const {
    return MeasurePlacement(snapshot, index, occupancy, request, hosts);
  }
  // The cost depends on which hosts of a leaf switch are taken, not on their number alone.
  bool hosts_matter() const {
    const PlacementObjective& o = request.objective;
    return request.constraints.host_count > 1 &&
           ((o.shared_links > 0 && !occupancy.channel_users.empty()) ||
            (o.load > 0 && !snapshot.load->empty()));
  }
  // The first hosts of each leaf switch, those to include among them.
  std::vector<HostIndex> FirstHosts(const LeafCounts& counts) const {
    std::vector<HostIndex> hosts;
    for (const auto& [position, count] : counts) {
      const auto all = open.hosts_of(open.leaves[position]);
      hosts.insert(hosts.end(), all.begin(), all.begin() + count);
    }
    return hosts;
  }
};

// Leaf switch by leaf switch, pod by pod: neighbours in this order are near each other.
inline void SortByLeaf(const PlacementIndex& index, std::vector<HostIndex>& hosts) {
  absl::c_sort(hosts, [&](HostIndex a, HostIndex b) {
    return std::pair(index.leaf_of(a), a) < std::pair(index.leaf_of(b), b);
  });
}

// A set of hosts and what it costs without traffic; its measures where they have been counted.
struct Choice {
  std::vector<HostIndex> hosts;
  double cost = 0;
  std::optional<PlacementMeasures> measures;
};

// How much work a search may do; the same for every placement, so that answers are repeatable.
struct SearchLimits {
  uint64_t exact_patience = 60'000;   // of SearchExactly; 0: no exact search
  uint64_t count_patience = 200'000;  // of ImproveCounts, for all starts together
  uint64_t host_patience = 60'000;    // host_set.h, for all starts together
  uint64_t ball_patience = 400'000;   // leaf switches looked at by balls
  uint32_t measured = 6;              // sets whose cost is counted in full, ...
  uint64_t routes = 8192;             // ... as long as their routes are no more; at least one
};

struct SearchResult {
  std::vector<Choice> choices;  // different ones, by cost; at least one
  bool is_optimal = false;      // the first one is, proven
};

// `question.open` meets its constraints (FindOpenHosts). Traffic of a pattern is not looked at.
SearchResult SearchPlacement(const PlacementQuestion& question, const SearchLimits& limits);

// By branch and bound (exact_search.cc). Looks through all answers within `scopes`, which hold all
// there are, and keeps in `best` whichever costs less than what is there (an empty choice: the
// first). True: nothing is cheaper. False: given up after `patience` units of work, about 1 us
// each; `best` is still an answer or what it was. O(2^open hosts) without the bound; gives up at
// once on more than 64 leaf switches.
bool SearchExactly(const PlacementQuestion& question, absl::Span<const OpenScope> scopes,
                   uint64_t patience, Choice& best);

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

// A pattern on a set of hosts as the mapping engine's question. The places are the first ports of
// `hosts`, in this order; the objective is congestion. Errors as Places::OfEndpoints and
// PlaceDistances::Hops.
absl::StatusOr<MappingProblem> PatternProblem(const PlacementQuestion& question,
                                              absl::Span<const HostIndex> hosts);

// The term of the cost; proportional to the congestion. 0 for a pattern without bytes.
double TrafficOf(const PlacementQuestion& question, double max_congestion);

// Judges each of `found.choices` (the best without traffic first) by a quick order of the pattern's
// ranks, and searches the best one's for a better one until `control` ends it; where hosts and
// ranks are few, all sets of hosts and all orders on them. Fills in the plan but for the measures
// without traffic; its reason is about the order. Errors as those of the mapping engine: NOT_FOUND:
// hosts that exchange bytes have no route between them.
absl::StatusOr<PlacementPlan> OrderRanks(const PlacementQuestion& question,
                                         const SearchResult& found, const PatternLimits& limits,
                                         const SearchControl& control);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PLACEMENT_SEARCH_H_
