// All shortest paths in equal shares, exactly (Hoefler 2011, section 2.5), without listing a path.
//
//            a            paths(t) = 1, paths(s) = sum of paths(n) over the channels s -> n that
//          /   \          lead nearer to t; of a flow f at s the channel s -> n carries
//      s =       t            f * paths(n) / paths(s)
//          \\  /
//            b            here s has 3 paths to t, one over a, two over the cables to b
//
// Hoefler counts paths of every length between all pairs of vertices, O(V^2 E). We go from the
// senders' switches down the distances to one destination switch at a time: only what lies on a
// shortest path that is used is touched, and all places of both switches share it. Counts are
// floating point: beyond 2^53 paths shares are rounded, to 1 part in 2^52.
//
// O(destination switches * channels on shortest paths to them).
#include "daemon/mapping/link_traffic_even.h"

#include <algorithm>

#include "daemon/base/status_macros.h"

namespace coppice {

EvenPaths::EvenPaths(const SwitchDistances& distances)
    : distances_(distances),
      paths_(distances.fabric().switch_count(), 0.0),
      flows_(distances.fabric().switch_count(), 0.0),
      layers_(256) {}

std::optional<uint32_t> EvenPaths::Spread(
    SwitchIndex t, absl::Span<const SwitchFlow> flows,
    absl::FunctionRef<void(ChannelIndex channel, double bytes)> visit) {
  uint32_t farthest = 0;
  for (const SwitchFlow& flow : flows) {
    const uint8_t far = distances_.Between(flow.from, t);
    if (far == SwitchDistances::kUnreachable) return std::nullopt;
    farthest = std::max<uint32_t>(farthest, far);
  }
  for (const SwitchFlow& flow : flows) {
    if (flow.from == t) continue;
    Reach(flow.from, distances_.Between(flow.from, t));
    flows_[flow.from.value()] += flow.bytes;
  }
  FindShortestPaths(t, farthest);
  CountPaths(t, farthest);
  SendDown(t, farthest, visit);
  return farthest;
}

// paths_ below 0 marks a switch that is reached and whose paths are not counted yet.
void EvenPaths::Reach(SwitchIndex s, uint32_t distance) {
  if (paths_[s.value()] != 0) return;
  paths_[s.value()] = -1;
  layers_[distance].push_back(s);
}

void EvenPaths::FindShortestPaths(SwitchIndex t, uint32_t farthest) {
  for (uint32_t d = farthest; d >= 2; --d) {
    for (const SwitchIndex s : layers_[d]) {
      ForEachChannelNearer(distances_, s, t, [&](const Channel& channel) {
        Reach(SwitchIndex(channel.to.value()), d - 1);
      });
    }
  }
}

void EvenPaths::CountPaths(SwitchIndex t, uint32_t farthest) {
  paths_[t.value()] = 1;
  for (uint32_t d = 1; d <= farthest; ++d) {
    for (const SwitchIndex s : layers_[d]) {
      double paths = 0;
      ForEachChannelNearer(distances_, s, t,
                           [&](const Channel& channel) { paths += paths_[channel.to.value()]; });
      paths_[s.value()] = paths;
    }
  }
}

void EvenPaths::SendDown(SwitchIndex t, uint32_t farthest,
                         absl::FunctionRef<void(ChannelIndex channel, double bytes)> visit) {
  for (uint32_t d = farthest; d >= 1; --d) {
    for (const SwitchIndex s : layers_[d]) {
      const double flow = flows_[s.value()], paths = paths_[s.value()];
      ForEachChannelNearer(distances_, s, t, [&](const Channel& channel) {
        const double bytes = flow * paths_[channel.to.value()] / paths;
        visit(channel.index, bytes);
        if (d > 1) flows_[channel.to.value()] += bytes;
      });
      flows_[s.value()] = 0;
      paths_[s.value()] = 0;
    }
    layers_[d].clear();
  }
  paths_[t.value()] = 0;
}

absl::StatusOr<LinkTraffic> OverEvenShortestPaths(const MappingProblem& problem,
                                                  absl::Span<const PlaceIndex> mapping) {
  const Routes& routes = *problem.snapshot->routes;
  LinkTraffic traffic;
  traffic.bytes.resize(routes.fabric().channel_count(), 0.0);
  EvenPaths paths(routes.distances());
  RETURN_IF_ERROR(ForEachDestination(
      problem, mapping, FlowsEndAt::kLeafSwitches, traffic, [&](const DestinationFlows& to) {
        const std::optional<uint32_t> farthest =
            paths.Spread(to.to_switch, to.flows,
                         [&](ChannelIndex c, double bytes) { traffic.bytes[c.value()] += bytes; });
        if (!farthest) return NoPath(routes, to.from, to.to);
        traffic.longest = std::max(traffic.longest, *farthest + 2);
        return absl::OkStatus();
      }));
  return traffic;
}

}  // namespace coppice
