// Over the routes: the routes to one endpoint form a tree, whose edges are asked for once.
#include "daemon/mapping/link_traffic.h"

#include <algorithm>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/link_traffic_flows.h"

namespace coppice {
namespace {

class RouteTrees {
 public:
  RouteTrees(const Routes& routes, LinkTraffic& traffic)
      : routes_(routes),
        fabric_(routes.fabric()),
        traffic_(traffic),
        next_(fabric_.switch_count()),
        next_of_(fabric_.switch_count(), kNobody) {}

  absl::Status Push(const DestinationFlows& destination) {
    const VertexIndex to = fabric_.Vertex(destination.to);
    const ChannelIndex last = Fabric::Reverse(fabric_.uplink(destination.to));
    for (const SwitchFlow& flow : destination.flows) {
      SwitchIndex here = flow.from;
      uint32_t links = 2;
      for (ChannelIndex c = Next(here, to); c != last; c = Next(here, to), ++links) {
        if (c == kNoChannel || links > fabric_.switch_count() + 2 ||
            !fabric_.IsSwitch(fabric_.channel_to(c))) {
          return Broken(flow.from, destination.to);
        }
        traffic_.bytes[c.value()] += flow.bytes;
        here = fabric_.AsSwitch(fabric_.channel_to(c));
      }
      traffic_.longest = std::max(traffic_.longest, links);
    }
    return absl::OkStatus();
  }

 private:
  static constexpr uint32_t kNobody = 0xffffffff;

  ChannelIndex Next(SwitchIndex here, VertexIndex to) {
    if (next_of_[here.value()] != to.value()) {
      next_of_[here.value()] = to.value();
      next_[here.value()] = routes_.NextChannel(here, to);
    }
    return next_[here.value()];
  }

  // Errors name the switch that the route starts from: its endpoints all share it.
  absl::Status Broken(SwitchIndex from, EndpointIndex to) {
    std::vector<ChannelIndex> path;
    return routes_.Append(fabric_.Vertex(from), fabric_.Vertex(to), path);
  }

  const Routes& routes_;
  const Fabric& fabric_;
  LinkTraffic& traffic_;
  std::vector<ChannelIndex> next_;  // [switch] towards the destination next_of_
  std::vector<uint32_t> next_of_;
};

absl::StatusOr<LinkTraffic> OverRoutes(const MappingProblem& problem,
                                       absl::Span<const PlaceIndex> mapping) {
  LinkTraffic traffic;
  traffic.bytes.resize(problem.snapshot->fabric->channel_count(), 0.0);
  RouteTrees trees(*problem.snapshot->routes, traffic);
  RETURN_IF_ERROR(
      ForEachDestination(problem, mapping, FlowsEndAt::kEndpoints, traffic,
                         [&](const DestinationFlows& flows) { return trees.Push(flows); }));
  return traffic;
}

}  // namespace

std::vector<double> ChannelCapacities(const MappingProblem& problem) {
  const Fabric& fabric = *problem.snapshot->fabric;
  const double least = fabric.least_capacity_gbps();
  std::vector<double> capacities(fabric.channel_count());
  for (uint32_t c = 0; c < fabric.channel_count(); ++c) {
    const double known = fabric.capacity_gbps(ChannelIndex(c));
    const double capacity = known > 0 ? known : least > 0 ? least : 1.0;
    const double load = problem.use_load ? problem.snapshot->utilisation(ChannelIndex(c)) : 0.0;
    capacities[c] = capacity * std::max(0.01, 1.0 - load);
  }
  return capacities;
}

absl::StatusOr<LinkTraffic> CountLinkTraffic(const MappingProblem& problem,
                                             absl::Span<const PlaceIndex> mapping) {
  switch (problem.traffic) {
    case TrafficModel::kRoutes:
      return OverRoutes(problem, mapping);
    case TrafficModel::kEvenShortestPaths:
      return OverEvenShortestPaths(problem, mapping);
    case TrafficModel::kApproximate:
      return OverLeastLoadedPaths(problem, mapping);
  }
  return OverRoutes(problem, mapping);
}

}  // namespace coppice
