#include "daemon/tree/type1_bound.h"

#include "absl/algorithm/container.h"
#include "daemon/tree/even_routes.h"

namespace coppice {

Type1Bound::Type1Bound(const Snapshot& snapshot, const CostProfile& profile,
                       const TreeRequest& request, const MemberPlaces& places)
    : snapshot_(snapshot),
      profile_(profile),
      request_(request),
      all_on_switches_(places.all_on_switches) {
  FindPlaces(places);
  if (all_on_switches_) between_gbps_ = EvenTrunkGbps(snapshot, profile);
  ports_space_packets_ = is_exact() || !BundlesAreShared();
  tree_.rank_count = static_cast<uint32_t>(places_.size());
  edges_.resize(places_.size());
}

void Type1Bound::FindPlaces(const MemberPlaces& places) {
  const Fabric& fabric = *snapshot_.fabric;
  const bool is_loaded = !snapshot_.load->empty();
  places_.reserve(request_.members.size());
  for (size_t rank = 0; rank < request_.members.size(); ++rank) {
    const EndpointIndex member = request_.members[rank];
    Place& place = places_.emplace_back();
    place.bundle = fabric.bundle(member);
    if (!all_on_switches_) continue;
    place.leaf = places.leaf_switches[places.leaf_of_endpoint[places.endpoint_of_rank[rank]]];
    const ChannelIndex up = fabric.uplink(member);
    place.gbps = KnownCapacity(snapshot_, profile_, up);
    if (!is_loaded) continue;
    place.wait_up_us = WaitUs(snapshot_, profile_, up);
    place.wait_down_us = WaitUs(snapshot_, profile_, Fabric::Reverse(up));
  }
}

// Ranks mostly go from bundle to bundle in order.
bool Type1Bound::BundlesAreShared() const {
  std::vector<BundleIndex> bundles;
  bundles.reserve(places_.size());
  for (const Place& place : places_) bundles.push_back(place.bundle);
  if (!absl::c_is_sorted(bundles)) absl::c_sort(bundles);
  return absl::c_adjacent_find(bundles) != bundles.end();
}

// The least that a packet needs between two ranks, added up in the order of the walk.
EdgeCost Type1Bound::EdgeOf(const Place& child, const Place& parent) const {
  EdgeCost edge;
  if (child.bundle == parent.bundle) {
    edge.time_up_us = edge.time_down_us = static_cast<float>(profile_.same_host_us);
    return edge;
  }
  uint32_t hops = 0;
  if (all_on_switches_ && child.leaf != parent.leaf) {
    hops = snapshot_.routes->distances().Between(child.leaf, parent.leaf);
  }
  const uint32_t links = all_on_switches_ ? 2 + hops : 1;
  double up_us = profile_.link_us + child.wait_up_us;
  double down_us = profile_.link_us + parent.wait_up_us;
  for (uint32_t l = 1; l < links; ++l) {
    up_us += profile_.link_us;
    down_us += profile_.link_us;
  }
  edge.links_up = edge.links_down = links;
  edge.time_up_us = static_cast<float>(up_us + parent.wait_down_us);
  edge.time_down_us = static_cast<float>(down_us + child.wait_down_us);
  const double between = hops > 0 ? between_gbps() : 0;
  edge.min_gbps_up = edge.min_gbps_down =
      static_cast<float>(LeastKnown(LeastKnown(child.gbps, between), parent.gbps));
  edge.port_gbps_down = static_cast<float>(parent.gbps);
  if (ports_space_packets_) edge.port_gbps_up = edge.port_gbps_down;
  return edge;
}

double Type1Bound::Of(absl::Span<const int32_t> parents, double cutoff) {
  tree_.parents.assign(parents.begin(), parents.end());
  for (size_t rank = 0; rank < parents.size(); ++rank) {
    if (parents[rank] >= 0) edges_[rank] = EdgeOf(places_[rank], places_[parents[rank]]);
  }
  return EvaluateMix(profile_, tree_, edges_, request_, cutoff).total_us;
}

}  // namespace coppice
