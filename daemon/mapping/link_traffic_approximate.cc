// The fast approximation of congestion (Hoefler 2011, algorithm 3): every pair in turn takes, among
// its shortest paths, the one whose links carry least so far.
//
//     s --3-- a --1-- t        rho of the links so far: over a 3 + 1, over b 2 + 0: b, whose links
//      \             /         rise by bytes / capacity
//       2 --- b --- 0
//
// Departures. Hoefler starts all links at a weight w^ that no congestion reaches, so that Dijkstra
// prefers fewer links, and subtracts it at the end; distances between switches are known here, so
// we go down them one layer after another and need neither w^ nor a queue. What one leaf switch
// sends to one place is one flow, with the bytes of its ranks added up. The order is that of the
// places that are sent to, then of those that send: another order gives another, equally good
// answer. Links of hosts are no choice and do not enter rho.
//
// O(flows * channels on shortest paths between their ends).
#include <algorithm>
#include <limits>
#include <vector>

#include "daemon/base/status_macros.h"
#include "daemon/mapping/link_traffic_flows.h"

namespace coppice {
namespace {

class LeastLoaded {
 public:
  LeastLoaded(const MappingProblem& problem, LinkTraffic& traffic)
      : routes_(*problem.snapshot->routes),
        fabric_(routes_.fabric()),
        distances_(routes_.distances()),
        capacities_(ChannelCapacities(problem)),
        traffic_(traffic),
        cost_(fabric_.switch_count(), kFar),
        by_(fabric_.switch_count()) {}

  absl::Status Push(const DestinationFlows& destination) {
    for (const SwitchFlow& flow : destination.flows) {
      const SwitchIndex t = destination.to_switch;
      const uint8_t links = flow.from == t ? 0 : distances_.Between(flow.from, t);
      if (links == SwitchDistances::kUnreachable) {
        return NoPath(routes_, destination.from, destination.to);
      }
      traffic_.longest = std::max<uint32_t>(traffic_.longest, links + 2);
      if (links == 0) continue;
      FindPath(flow.from, t, links);
      for (SwitchIndex s = t; s != flow.from;) {
        const ChannelIndex c = by_[s.value()];
        traffic_.bytes[c.value()] += flow.bytes;
        s = fabric_.AsSwitch(fabric_.channel_from(c));
      }
    }
    return absl::OkStatus();
  }

 private:
  static constexpr double kFar = std::numeric_limits<double>::infinity();

  // by_[s]: the channel by which the least loaded path comes to s; the first of equals.
  void FindPath(SwitchIndex from, SwitchIndex to, uint32_t links) {
    layer_.assign(1, from);
    cost_[from.value()] = 0;
    for (uint32_t d = links; d >= 1; --d) {
      next_.clear();
      for (const SwitchIndex s : layer_) {
        ForEachChannelNearer(distances_, s, to, [&](const Channel& channel) {
          const uint32_t c = channel.index.value(), n = channel.to.value();
          const double cost = cost_[s.value()] + traffic_.bytes[c] / capacities_[c];
          if (cost >= cost_[n]) return;
          if (cost_[n] == kFar) next_.push_back(SwitchIndex(n));
          cost_[n] = cost;
          by_[n] = channel.index;
        });
      }
      for (const SwitchIndex s : layer_) cost_[s.value()] = kFar;
      layer_.swap(next_);
    }
    cost_[to.value()] = kFar;
  }

  const Routes& routes_;
  const Fabric& fabric_;
  const SwitchDistances& distances_;
  const std::vector<double> capacities_;
  LinkTraffic& traffic_;
  std::vector<double> cost_;      // [switch] of the least loaded path to it
  std::vector<ChannelIndex> by_;  // [switch]
  std::vector<SwitchIndex> layer_, next_;
};

}  // namespace

absl::StatusOr<LinkTraffic> OverLeastLoadedPaths(const MappingProblem& problem,
                                                 absl::Span<const PlaceIndex> mapping) {
  LinkTraffic traffic;
  traffic.bytes.resize(problem.snapshot->fabric->channel_count(), 0.0);
  LeastLoaded paths(problem, traffic);
  RETURN_IF_ERROR(
      ForEachDestination(problem, mapping, FlowsEndAt::kEndpoints, traffic,
                         [&](const DestinationFlows& flows) { return paths.Push(flows); }));
  return traffic;
}

}  // namespace coppice
