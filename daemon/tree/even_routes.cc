#include "daemon/tree/even_routes.h"

#include <algorithm>

#include "daemon/tree/pipelining.h"

namespace coppice {
namespace {

double LeastKnown(double a, double b) {
  if (a == 0 || b == 0) return a + b;
  return std::min(a, b);
}

}  // namespace

double KnownCapacity(const Snapshot& snapshot, const CostProfile& profile, ChannelIndex channel) {
  const double known = snapshot.fabric->capacity_gbps(channel);
  return known > 0 ? known : profile.port_gbps;
}

double WaitUs(const Snapshot& snapshot, const CostProfile& profile, ChannelIndex channel) {
  constexpr double kMostUtilisation = 0.99;
  const double gbps = KnownCapacity(snapshot, profile, channel);
  const double u = std::clamp<double>(snapshot.utilisation(channel), 0, kMostUtilisation);
  return u > 0 ? SerialisationUs(profile.mtu_bytes, gbps) * u / (2 * (1 - u)) : 0;
}

EvenRoutes::EvenRoutes(const Snapshot& snapshot, const CostProfile& profile,
                       const AggregationTree& tree)
    : snapshot_(snapshot),
      fabric_(*snapshot.fabric),
      profile_(profile),
      applies_(snapshot.routes->kind() == RouteKind::kShortestPath && snapshot.load->empty() &&
               fabric_.link_count() / kLinksPerNode <= tree.node_count() && LinksAreAlike()) {}

bool EvenRoutes::Find(VertexIndex child, VertexIndex parent, EdgeCost& edge) {
  if (!applies_) return false;
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
  const double between = hops > 0 ? gbps_ : 0;
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

bool EvenRoutes::LinksAreAlike() {
  bool first = true;
  for (uint32_t l = 0; l < fabric_.link_count(); ++l) {
    if (!fabric_.IsSwitch(fabric_.link(LinkIndex(l)).b)) continue;  // b is the higher vertex
    const double gbps = KnownCapacity(snapshot_, profile_, ChannelIndex(2 * l));
    if (!first && gbps != gbps_) return false;
    gbps_ = gbps;
    first = false;
  }
  return true;
}

}  // namespace coppice
