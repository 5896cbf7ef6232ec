// The question behind one placement, gathered for the searches: never longer-lived than what it
// refers to.
#ifndef COPPICE_DAEMON_PLACEMENT_PLACEMENT_QUESTION_H_
#define COPPICE_DAEMON_PLACEMENT_PLACEMENT_QUESTION_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/placement/placement_constraints.h"
#include "daemon/placement/placement_metrics.h"
#include "daemon/placement/placer.h"

namespace coppice {

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
  std::sort(hosts.begin(), hosts.end(), [&](HostIndex a, HostIndex b) {
    return std::pair(index.leaf_of(a), a) < std::pair(index.leaf_of(b), b);
  });
}

// A set of hosts and what it costs without traffic; its measures where they have been counted.
struct Choice {
  std::vector<HostIndex> hosts;
  double cost = 0;
  std::optional<PlacementMeasures> measures;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PLACEMENT_QUESTION_H_
