#include "daemon/mapping/search/links/traffic_routes.h"

#include <algorithm>
#include <optional>

namespace coppice {
// All shortest paths in equal shares, exactly (Hoefler 2011, section 2.5), without listing a path.
//
//            a            paths(t) = 1, paths(s) = sum of paths(n) over the channels s -> n that
//          /   \          lead nearer to t; of a flow f at s the channel s -> n carries
//      s =       t            f * paths(n) / paths(s)
//          \\  /
//            b            here s has 3 paths to t, one over a, two over the cables to b
//
// We go from the senders' switches down the distances to one destination switch at a time: only
// what lies on a shortest path that is used is touched. O(destination switches * channels on
// shortest paths to them), where Hoefler counts all paths, O(V^2 E).

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

absl::Status OverEvenShortestPaths(const MappingProblem& problem,
                                   absl::Span<const PlaceIndex> mapping, LinkTraffic& traffic) {
  const Routes& routes = *problem.snapshot->routes;
  EvenPaths paths(routes.distances());
  return ForEachDestination(
      problem, mapping, FlowsEndAt::kLeafSwitches, traffic, [&](const DestinationFlows& to) {
        const std::optional<uint32_t> farthest =
            paths.Spread(to.to_switch, to.flows,
                         [&](ChannelIndex c, double bytes) { traffic.bytes[c.value()] += bytes; });
        if (!farthest) return NoPath(routes, to.from, to.to);
        traffic.longest = std::max(traffic.longest, *farthest + 2);
        return absl::OkStatus();
      });
}

TrafficRoutes::TrafficRoutes(const MappingProblem& problem, size_t max_table_bytes)
    : problem_(problem),
      even_(problem.traffic != TrafficModel::kRoutes),
      in_parts_(problem.snapshot->fabric->component_count() > 1),
      switches_(problem.snapshot->fabric->switch_count()),
      max_table_bytes_(max_table_bytes) {
  const Fabric& fabric = *problem.snapshot->fabric;
  const Places& places = *problem.places;
  leaf_number_.assign(switches_, kNoSwitch);
  for (uint32_t p = 0; p < places.count(); ++p) {
    const EndpointIndex e = places.endpoint(PlaceIndex(p));
    const std::optional<SwitchIndex> leaf = fabric.attached_switch(e);
    sites_.push_back({fabric.bundle(e).value(), leaf ? leaf->value() : kNoSwitch,
                      leaf ? fabric.uplink(e).value() : 0});
    all_have_leaves_ &= leaf.has_value();
    if (leaf && leaf_number_[leaf->value()] == kNoSwitch) leaf_number_[leaf->value()] = leaves_++;
  }
  if (even_) {
    paths_ = std::make_unique<EvenPaths>(problem.snapshot->routes->distances());
    const size_t lists = size_t{leaves_} * leaves_;
    if (lists * sizeof(List) <= max_table_bytes_ / 4) lists_.resize(lists);
    return;
  }
  channel_to_.resize(fabric.channel_count());
  for (uint32_t c = 0; c < channel_to_.size(); ++c) {
    channel_to_[c] = fabric.channel_to(ChannelIndex(c)).value();
  }
  const size_t entries = size_t{places.count()} * switches_;
  if (entries * sizeof(uint32_t) <= max_table_bytes_) next_.assign(entries, kUnknown);
}

bool TrafficRoutes::OnPartsOfOneHost(uint32_t a, uint32_t b) const {
  const Places& places = *problem_.places;
  return problem_.snapshot->fabric->StayWithinHost(places.endpoint(PlaceIndex(a)),
                                                   places.endpoint(PlaceIndex(b)));
}

uint32_t TrafficRoutes::Step(uint32_t to, uint32_t at) const {
  const Fabric& fabric = *problem_.snapshot->fabric;
  return problem_.snapshot->routes
      ->NextChannel(SwitchIndex(at), fabric.Vertex(problem_.places->endpoint(PlaceIndex(to))))
      .value();
}

bool TrafficRoutes::FindCable(uint32_t from, uint32_t to) {
  const Fabric& fabric = *problem_.snapshot->fabric;
  const Places& places = *problem_.places;
  cable_.clear();
  return problem_.snapshot->routes
      ->Append(fabric.Vertex(places.endpoint(PlaceIndex(from))),
               fabric.Vertex(places.endpoint(PlaceIndex(to))), cable_)
      .ok();
}

absl::Span<const TrafficRoutes::Share> TrafficRoutes::Shares(uint32_t from_leaf, uint32_t to_leaf,
                                                             bool& found) {
  List none;
  List& list = lists_.empty()
                   ? none
                   : lists_[size_t{leaf_number_[from_leaf]} * leaves_ + leaf_number_[to_leaf]];
  found = true;
  if (list.begin != kUnknown) {
    return absl::MakeConstSpan(shares_).subspan(list.begin, list.size);
  }
  walked_.clear();
  const SwitchFlow unit{SwitchIndex(from_leaf), 1.0};
  const auto keep = [&](ChannelIndex c, double share) { walked_.push_back({c.value(), share}); };
  found = paths_->Spread(SwitchIndex(to_leaf), absl::MakeConstSpan(&unit, 1), keep).has_value();
  const size_t bytes = (shares_.size() + walked_.size()) * sizeof(Share);
  if (found && !lists_.empty() && bytes <= max_table_bytes_ / 4 * 3) {
    list = {static_cast<uint32_t>(shares_.size()), static_cast<uint32_t>(walked_.size())};
    shares_.insert(shares_.end(), walked_.begin(), walked_.end());
  }
  return walked_;
}

uint32_t LinklessSet(const Fabric& fabric, EndpointIndex e) {
  const absl::Span<const EndpointIndex> ports = fabric.endpoints_of_host(fabric.host(e));
  const uint32_t component = fabric.component(fabric.Vertex(e));
  const bool in_parts = std::any_of(ports.begin(), ports.end(), [&](EndpointIndex port) {
    return fabric.component(fabric.Vertex(port)) != component;
  });
  return fabric.bundle(in_parts ? ports.front() : e).value();
}

}  // namespace coppice
