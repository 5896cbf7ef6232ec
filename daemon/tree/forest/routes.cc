#include "daemon/tree/forest/routes.h"

#include <algorithm>

#include "daemon/base/status_macros.h"
#include "daemon/tree/even_routes.h"

namespace coppice {

ForestRoutes::ForestRoutes(const Snapshot& snapshot, const CostProfile& profile,
                           const MemberPlaces& places)
    : snapshot_(snapshot), profile_(profile), places_(places) {}

uint32_t ForestRoutes::PositionOf(ChannelIndex channel) {
  const auto [at, is_new] =
      position_.try_emplace(channel.value(), static_cast<uint32_t>(channels_.size()));
  if (!is_new) return at->second;
  const double gbps = KnownCapacity(snapshot_, profile_, channel);
  const double u = std::clamp<double>(snapshot_.utilisation(channel), 0, kMaxUtilisation);
  ForestChannel added;
  added.index = channel;
  added.us_per_byte = SerialisationUs(1, gbps * (1 - u));
  added.head_us = profile_.link_us + WaitUs(profile_, gbps, u);
  channels_.push_back(added);
  return at->second;
}

absl::StatusOr<uint32_t> ForestRoutes::Find(uint32_t from_rank, uint32_t to_rank) {
  const uint32_t from = places_.endpoint_of_rank[from_rank];
  const uint32_t to = places_.endpoint_of_rank[to_rank];
  const uint64_t key = uint64_t{from} << 32 | to;
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  path_.clear();
  const Fabric& fabric = *snapshot_.fabric;
  RETURN_IF_ERROR(snapshot_.routes->Append(fabric.Vertex(places_.endpoints[from]),
                                           fabric.Vertex(places_.endpoints[to]), path_));
  ForestRoute route;
  route.begin = static_cast<uint32_t>(hops_.size());
  for (const ChannelIndex channel : path_) {
    hops_.push_back(PositionOf(channel));
    route.tail_us_per_byte = std::max(
        route.tail_us_per_byte, SerialisationUs(1, KnownCapacity(snapshot_, profile_, channel)));
  }
  if (profile_.forward_includes_serialisation) route.tail_us_per_byte = 0;
  route.end = static_cast<uint32_t>(hops_.size());
  routes_.push_back(route);
  known_.emplace(key, static_cast<uint32_t>(routes_.size() - 1));
  return static_cast<uint32_t>(routes_.size() - 1);
}

}  // namespace coppice
