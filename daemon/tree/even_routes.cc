#include "daemon/tree/even_routes.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree_metrics.h"

namespace coppice {
double LeastKnown(double a, double b) {
  if (a == 0 || b == 0) return a + b;
  return std::min(a, b);
}

double KnownCapacity(const Snapshot& snapshot, const CostProfile& profile, ChannelIndex channel) {
  const double known = snapshot.fabric->capacity_gbps(channel);
  return known > 0 ? known : profile.port_gbps;
}

double WaitUs(const CostProfile& profile, double gbps, double utilisation) {
  const double u = std::clamp<double>(utilisation, 0, kMaxUtilisation);
  return u > 0 ? SerialisationUs(profile.mtu_bytes, gbps) * u / (2 * (1 - u)) : 0;
}

double WaitUs(const Snapshot& snapshot, const CostProfile& profile, ChannelIndex channel) {
  return WaitUs(profile, KnownCapacity(snapshot, profile, channel), snapshot.utilisation(channel));
}

std::optional<double> EvenTrunkGbps(const Snapshot& snapshot, const CostProfile& profile) {
  const std::optional<float> trunk = snapshot.fabric->trunk_gbps();
  if (!trunk || snapshot.routes->kind() != RouteKind::kShortestPath || !snapshot.load->empty()) {
    return std::nullopt;
  }
  return *trunk > 0 ? *trunk : profile.port_gbps;
}

EvenRoutes::EvenRoutes(const Snapshot& snapshot, const CostProfile& profile)
    : snapshot_(snapshot),
      fabric_(*snapshot.fabric),
      profile_(profile),
      trunk_gbps_(EvenTrunkGbps(snapshot, profile)) {}

bool EvenRoutes::Find(VertexIndex child, VertexIndex parent, EdgeCost& edge) {
  if (!trunk_gbps_) return false;
  if (child == parent || StayWithinHost(child, parent)) {
    edge.time_up_us = edge.time_down_us = static_cast<float>(profile_.same_host_us);
    return true;
  }
  const Place from = PlaceOf(child);
  if (parent != last_parent_) {
    last_parent_ = parent;
    last_to_ = PlaceOf(parent);
    has_last_ = false;
  }
  if (!has_last_ || from != last_from_) {
    last_from_ = from;
    has_last_ = Cost(from, last_to_, last_);
  }
  if (has_last_) edge = last_;
  return has_last_;
}

// False: there may be no route.
bool EvenRoutes::Cost(const Place& from, const Place& to, EdgeCost& edge) const {
  if (!from.known || !to.known) return false;
  const uint8_t hops = snapshot_.routes->distances().Between(from.at, to.at);
  if (hops == SwitchDistances::kUnreachable) return false;
  const uint32_t links = from.links + hops + to.links;
  double time_us = 0;
  for (uint32_t l = 0; l < links; ++l) time_us += profile_.link_us;
  const double between = hops > 0 ? *trunk_gbps_ : 0;
  const double port = to.links > 0 ? to.gbps : hops > 0 ? between : from.gbps;
  edge.links_up = edge.links_down = links;
  edge.time_up_us = edge.time_down_us = static_cast<float>(time_us);
  edge.min_gbps_up = edge.min_gbps_down =
      static_cast<float>(LeastKnown(LeastKnown(from.gbps, between), to.gbps));
  edge.port_gbps_up = edge.port_gbps_down = static_cast<float>(port);
  return true;
}

bool EvenRoutes::StayWithinHost(VertexIndex a, VertexIndex b) const {
  return !fabric_.IsSwitch(a) && !fabric_.IsSwitch(b) &&
         fabric_.StayWithinHost(fabric_.AsEndpoint(a), fabric_.AsEndpoint(b));
}

EvenRoutes::Place EvenRoutes::PlaceOf(VertexIndex v) const {
  if (fabric_.IsSwitch(v)) return {true, fabric_.AsSwitch(v), 0, 0};
  const ChannelIndex up = fabric_.uplink(fabric_.AsEndpoint(v));
  if (up == kNoChannel) return {};
  const VertexIndex at = fabric_.link(Fabric::link_of(up)).a;  // the lower vertex
  return {true, fabric_.AsSwitch(at), 1, KnownCapacity(snapshot_, profile_, up)};
}

namespace {

constexpr uint32_t kNobody = UINT32_MAX, kSeveral = UINT32_MAX - 1;

class Finder {
 public:
  Finder(const Snapshot& snapshot, const CostProfile& profile, const AggregationTree& tree)
      : snapshot_(snapshot), profile_(profile), tree_(tree) {}

  absl::StatusOr<TreeRoutes> Run() {
    routes_.begin.reserve(2 * tree_.node_count() + 1);
    for (uint32_t node = 0; node < tree_.node_count(); ++node) {
      for (const bool down : {false, true}) {
        routes_.begin.push_back(static_cast<uint32_t>(routes_.hops.size()));
        if (tree_.parents[node] != AggregationTree::kNoParent) {
          RETURN_IF_ERROR(Walk(node, down));
        }
      }
    }
    routes_.begin.push_back(static_cast<uint32_t>(routes_.hops.size()));
    for (uint32_t node = 0; node < tree_.node_count(); ++node) {
      for (const bool down : {false, true}) Classify(2 * node + (down ? 1 : 0), down);
    }
    return std::move(routes_);
  }

 private:
  absl::Status Walk(uint32_t node, bool down) {
    const auto parent = static_cast<uint32_t>(tree_.parents[node]);
    const VertexIndex child = tree_.vertices[node], above = tree_.vertices[parent];
    path_.clear();
    RETURN_IF_ERROR(snapshot_.routes->Append(down ? above : child, down ? child : above, path_));
    for (const ChannelIndex channel : path_) {
      const uint32_t link = LinkOf(channel);
      ++(down ? routes_.links[link].down : routes_.links[link].up);
      uint32_t& parents = (down ? parent_down_ : parent_up_)[link];
      parents = parents == kNobody || parents == parent ? parent : kSeveral;
      routes_.hops.push_back({.link = link});
    }
    return absl::OkStatus();
  }

  uint32_t LinkOf(ChannelIndex channel) {
    const auto [at, is_new] =
        number_.try_emplace(channel.value(), static_cast<uint32_t>(routes_.links.size()));
    if (is_new) {
      routes_.links.push_back(
          {.us_per_byte = SerialisationUs(1, KnownCapacity(snapshot_, profile_, channel)),
           .pass_us = profile_.link_us + WaitUs(snapshot_, profile_, channel)});
      parent_up_.push_back(kNobody);
      parent_down_.push_back(kNobody);
    }
    return at->second;
  }

  // At its parent's own port an edge meets siblings that the parent takes, or sends to, one after
  // another anyway.
  void Classify(uint32_t way, bool down) {
    const uint32_t first = routes_.begin[way], end = routes_.begin[way + 1];
    for (uint32_t h = first; h < end; ++h) {
      TreeRoutes::Hop& hop = routes_.hops[h];
      const TreeRoutes::Link& link = routes_.links[hop.link];
      if ((down ? link.down : link.up) < 2) continue;
      const bool at_parent = down ? h == first : h + 1 == end;
      const uint32_t parent = (down ? parent_down_ : parent_up_)[hop.link];
      const bool siblings = at_parent && parent != kSeveral;
      hop.sharing = siblings ? TreeRoutes::Sharing::kSiblings : TreeRoutes::Sharing::kOthers;
      routes_.shares = routes_.shares || !siblings;
    }
  }

  const Snapshot& snapshot_;
  const CostProfile& profile_;
  const AggregationTree& tree_;
  TreeRoutes routes_;
  std::vector<ChannelIndex> path_;
  absl::flat_hash_map<uint32_t, uint32_t> number_;  // channel -> position in links
  std::vector<uint32_t> parent_up_, parent_down_;   // [link] whose children's packets cross it
};

}  // namespace

absl::StatusOr<TreeRoutes> FindRoutes(const Snapshot& snapshot, const CostProfile& profile,
                                      const AggregationTree& tree) {
  return Finder(snapshot, profile, tree).Run();
}

}  // namespace coppice
