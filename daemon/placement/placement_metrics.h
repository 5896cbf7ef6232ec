// Every measure of a set of hosts, whoever chose it: counted from the fabric and the occupancy
// alone, independent of the optimiser.
#ifndef COPPICE_DAEMON_PLACEMENT_PLACEMENT_METRICS_H_
#define COPPICE_DAEMON_PLACEMENT_PLACEMENT_METRICS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/placement/placement_index.h"
#include "daemon/placement/placer.h"

namespace coppice {

// Which links between switches the routes of a job use: all of them for a small job, a fixed sample
// for a big one. Whoever keeps Occupancy::channel_users adds the links of every holder when it gets
// its hosts and takes them away when it loses them.
//
//     hosts A B C on leaf switches 0 0 1:  to A and to B from leaf 1, to C from leaf 0
//
// Forwarding is by destination, so that packets for one host take one way from all hosts of a leaf
// switch: a route is one of leaf switch and destination. A job with hosts on L leaf switches has
// (L - 1) routes to each of its n hosts; where that is more than kMaxRoutes, each host is reached
// from m = max(1, kMaxRoutes / n) leaf switches only, spread evenly, and those to which hosts of
// one leaf switch is reached from differ. The sample depends on nothing but hosts and fabric.
inline constexpr uint32_t kMaxRoutes = 4096;

// The distinct channels between switches on the routes of a job with these hosts (in any order),
// ascending. Routes that break off are left out. Thread-safe. O(min(n L, kMaxRoutes + n) * length
// * ports).
std::vector<ChannelIndex> JobChannels(const Snapshot& snapshot, const PlacementIndex& index,
                                      absl::Span<const HostIndex> hosts);

// Adds a holder of these hosts to `users` ([channel_count]; resized if it is empty): one on each of
// its JobChannels.
void AddHolder(const Snapshot& snapshot, const PlacementIndex& index,
               absl::Span<const HostIndex> hosts, std::vector<uint32_t>& users);

// From which of `leaf_count` leaf switches, numbered from 0, the host at `position` of the hosts of
// leaf switch `leaf` is reached: calls visit(other). `total` hosts are in the job.
template <class Visit>
void ForEachSource(uint32_t leaf, uint32_t position, uint32_t leaf_count, uint32_t total,
                   Visit visit) {
  const uint32_t others = leaf_count - 1;
  if (others == 0) return;
  const uint32_t most = total > kMaxRoutes ? 1 : kMaxRoutes / total;
  const uint32_t sources = others < most ? others : most;
  for (uint32_t i = 0; i < sources; ++i) {
    const auto step = static_cast<uint32_t>((uint64_t{i} * others / sources + position) % others);
    visit((leaf + 1 + step) % leaf_count);
  }
}

// The measures as placement_terms.h defines them, without least_leaf_switches (the optimiser's),
// max_congestion and traffic (the mapping's); the cost is without traffic. `hosts` are distinct
// hosts with a leaf switch. O(leaf switches squared + routes of JobChannels + hosts of the leaf
// switches; with trees, used leaf classes times classes of switches).
PlacementMeasures MeasurePlacement(const Snapshot& snapshot, const PlacementIndex& index,
                                   const Occupancy& occupancy, const PlacementRequest& request,
                                   absl::Span<const HostIndex> hosts);

// Of `leaves` (distinct) and one switch nearest to them all: how many have fewer entries left than
// `trees`. 0 without trees or known entries.
uint32_t SwitchesWithoutEntries(const Snapshot& snapshot, const PlacementIndex& index,
                                const Occupancy& occupancy, uint32_t trees,
                                absl::Span<const uint32_t> leaves);

// The independent verifier of every placement (placement_check.cc).
// INTERNAL, naming the constraint and a host: another number of hosts, one that is not the
// fabric's, taken twice, held, out, no candidate or to be avoided, one to include left out, hosts
// without a path between them, or a constraint that does not hold. Looks at the hierarchy itself,
// not at what the optimiser makes of it. O(endpoints + hosts).
absl::Status CheckPlacement(const Snapshot& snapshot, const Occupancy& occupancy,
                            const PlacementConstraints& constraints,
                            absl::Span<const HostIndex> hosts);

}  // namespace coppice

#endif  // COPPICE_DAEMON_PLACEMENT_PLACEMENT_METRICS_H_
