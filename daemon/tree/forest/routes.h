// The routes between a communicator's ports, each walked once, and what one collective puts on
// their channels: what shapes are built by and forests are judged by.
#ifndef COPPICE_DAEMON_TREE_FOREST_ROUTES_H_
#define COPPICE_DAEMON_TREE_FOREST_ROUTES_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree.h"

namespace coppice {

// A channel that some route crosses.
struct ForestChannel {
  ChannelIndex index;
  double us_per_byte = 0;  // of what others leave; 0: no limit known
  double head_us = 0;      // l + w(u)
};

struct ForestRoute {
  uint32_t begin = 0, end = 0;  // in hops(); empty: within a host
  double tail_us_per_byte = 0;  // 1 / B_min, unless phi contains it
};

// Not thread-safe. `snapshot`, `profile` and `places` must outlive it.
class ForestRoutes final {
 public:
  ForestRoutes(const Snapshot& snapshot, const CostProfile& profile, const MemberPlaces& places);

  // The route between the ports of two ranks; NOT_FOUND: there is none. The number stays.
  absl::StatusOr<uint32_t> Find(uint32_t from_rank, uint32_t to_rank);

  const ForestRoute& route(uint32_t number) const { return routes_[number]; }
  absl::Span<const uint32_t> hops(const ForestRoute& route) const {  // positions in channels()
    return absl::MakeConstSpan(hops_).subspan(route.begin, route.end - route.begin);
  }
  absl::Span<const ForestChannel> channels() const { return channels_; }
  const CostProfile& profile() const { return profile_; }

 private:
  uint32_t PositionOf(ChannelIndex channel);

  const Snapshot& snapshot_;
  const CostProfile& profile_;
  const MemberPlaces& places_;
  absl::flat_hash_map<uint64_t, uint32_t> known_;     // by both ports' positions
  absl::flat_hash_map<uint32_t, uint32_t> position_;  // by channel
  std::vector<ForestRoute> routes_;
  std::vector<uint32_t> hops_;
  std::vector<ForestChannel> channels_;
  std::vector<ChannelIndex> path_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_FOREST_ROUTES_H_
