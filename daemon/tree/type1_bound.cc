#include "daemon/tree/type1_bound.h"

#include <algorithm>

#include "daemon/tree/even_routes.h"

namespace coppice {
namespace {

constexpr size_t kMaxLeavesKept = 64;  // 4,096 edges

}  // namespace

Type1Bound::Type1Bound(const Snapshot& snapshot, const CostProfile& profile,
                       const TreeRequest& request, const MemberPlaces& places)
    : snapshot_(snapshot),
      profile_(profile),
      request_(request),
      leaf_switches_(places.leaf_switches),
      all_on_switches_(places.all_on_switches),
      evaluator_(profile) {
  FindPlaces(places);
  is_exact_ = all_on_switches_ && RoutesAreEven(snapshot, profile, places_.size(), between_gbps_);
  if (!is_exact_) between_gbps_ = 0;
  if (all_on_switches_ && waits_.empty() && leaf_switches_.size() <= kMaxLeavesKept &&
      PortsAreAlike()) {
    between_leaves_.resize(leaf_switches_.size() * leaf_switches_.size());
  }
  tree_.rank_count = static_cast<uint32_t>(places_.size());
  edges_.resize(places_.size());
}

void Type1Bound::FindPlaces(const MemberPlaces& places) {
  const Fabric& fabric = *snapshot_.fabric;
  places_.reserve(request_.members.size());
  for (size_t rank = 0; rank < request_.members.size(); ++rank) {
    const EndpointIndex member = request_.members[rank];
    Place place;
    place.bundle = fabric.bundle(member);
    place.leaf = places.leaf_of_endpoint[places.endpoint_of_rank[rank]];
    if (all_on_switches_) {
      const ChannelIndex up = fabric.uplink(member);
      place.gbps = KnownCapacity(snapshot_, profile_, up);
      if (!snapshot_.load->empty()) {
        waits_.push_back(
            {WaitUs(snapshot_, profile_, up), WaitUs(snapshot_, profile_, Fabric::Reverse(up))});
      }
    }
    places_.push_back(place);
  }
  bundles_are_shared_ = !FirstRanksOfBundles(fabric, request_.members).empty();
}

bool Type1Bound::PortsAreAlike() const {
  return std::all_of(places_.begin(), places_.end(),
                     [&](const Place& place) { return place.gbps == places_[0].gbps; });
}

float Type1Bound::TimeOf(uint32_t links, uint32_t from, uint32_t to) const {
  const bool is_loaded = !waits_.empty();
  double us = 0;
  for (uint32_t l = 0; l < links; ++l) {
    us += profile_.link_us;
    if (l == 0 && is_loaded) us += waits_[from].up_us;
  }
  return static_cast<float>(us + (links > 1 && is_loaded ? waits_[to].down_us : 0));
}

// The least that a packet needs from one rank to another, its child or its parent.
EdgeCost Type1Bound::EdgeOf(uint32_t child_rank, uint32_t parent_rank) {
  const Place& child = places_[child_rank];
  const Place& parent = places_[parent_rank];
  if (child.bundle == parent.bundle) {
    const auto same_host_us = static_cast<float>(profile_.same_host_us);
    return {.time_up_us = same_host_us, .time_down_us = same_host_us};
  }
  if (!between_leaves_.empty()) {
    EdgeCost& edge = between_leaves_[child.leaf * leaf_switches_.size() + parent.leaf];
    if (edge.links_up == 0) edge = EdgeBetween(child_rank, parent_rank);
    return edge;
  }
  if (waits_.empty() && child.IsLike(last_child_) && parent.IsLike(last_parent_)) return last_edge_;
  last_child_ = child;
  last_parent_ = parent;
  last_edge_ = EdgeBetween(child_rank, parent_rank);
  return last_edge_;
}

// Of ranks in different bundles. Where arrivals are only bounds and some packets follow each other
// faster, because they come from the parent's own bundle, all do: the first packet's spacing is
// free, so that with both spacings a later arrival might pay off.
EdgeCost Type1Bound::EdgeBetween(uint32_t child_rank, uint32_t parent_rank) const {
  const Place& child = places_[child_rank];
  const Place& parent = places_[parent_rank];
  uint32_t links = 1, hops = 0;
  if (all_on_switches_) {
    if (child.leaf != parent.leaf) {
      hops = snapshot_.routes->distances().Between(leaf_switches_[child.leaf],
                                                   leaf_switches_[parent.leaf]);
    }
    links = 2 + hops;
  }
  const double between_gbps = hops > 0 ? between_gbps_ : 0;
  const auto min_gbps =
      static_cast<float>(LeastKnown(LeastKnown(child.gbps, between_gbps), parent.gbps));
  const auto port_gbps = static_cast<float>(parent.gbps);
  return {.links_up = links,
          .links_down = links,
          .time_up_us = TimeOf(links, child_rank, parent_rank),
          .time_down_us = TimeOf(links, parent_rank, child_rank),
          .min_gbps_up = min_gbps,
          .min_gbps_down = min_gbps,
          .port_gbps_up = bundles_are_shared_ && !is_exact_ ? 0 : port_gbps,
          .port_gbps_down = port_gbps};
}

double Type1Bound::Of(absl::Span<const int32_t> parents, double cutoff) {
  tree_.parents.assign(parents.begin(), parents.end());
  for (uint32_t rank = 0; rank < tree_.rank_count; ++rank) {
    if (parents[rank] >= 0) edges_[rank] = EdgeOf(rank, static_cast<uint32_t>(parents[rank]));
  }
  return evaluator_.OfMix(tree_, edges_, request_.operation, request_.sizes, cutoff).total_us;
}

}  // namespace coppice
