// Over the routes: the routes to one endpoint form a tree, whose edges are asked for once.
#include "daemon/mapping/link_traffic.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/search/random.h"

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

absl::Status OverRoutes(const MappingProblem& problem, absl::Span<const PlaceIndex> mapping,
                        LinkTraffic& traffic) {
  RouteTrees trees(*problem.snapshot->routes, traffic);
  return ForEachDestination(problem, mapping, FlowsEndAt::kEndpoints, traffic,
                            [&](const DestinationFlows& flows) { return trees.Push(flows); });
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
  LinkTraffic traffic;
  traffic.bytes.resize(problem.snapshot->fabric->channel_count(), 0.0);
  const auto over = problem.traffic == TrafficModel::kRoutes              ? OverRoutes
                    : problem.traffic == TrafficModel::kEvenShortestPaths ? OverEvenShortestPaths
                                                                          : OverLeastLoadedPaths;
  RETURN_IF_ERROR(over(problem, mapping, traffic));
  return traffic;
}

namespace {

class Gatherer {
 public:
  Gatherer(const MappingProblem& problem, absl::Span<const PlaceIndex> mapping, FlowsEndAt end,
           LinkTraffic& traffic)
      : problem_(problem),
        fabric_(*problem.snapshot->fabric),
        mapping_(mapping),
        end_(end),
        traffic_(traffic),
        in_parts_(fabric_.component_count() > 1),
        flow_of_switch_(fabric_.switch_count(), 0.0) {
    const Places& places = *problem.places;
    sites_.reserve(places.count());
    for (uint32_t p = 0; p < places.count(); ++p) {
      const EndpointIndex e = places.endpoint(PlaceIndex(p));
      const std::optional<SwitchIndex> at = fabric_.attached_switch(e);
      sites_.push_back({fabric_.bundle(e).value(), at ? at->value() : kNoSwitch,
                        at ? fabric_.uplink(e).value() : 0});
    }
  }

  absl::Status Run(absl::FunctionRef<absl::Status(const DestinationFlows&)> push) {
    const uint32_t ranks = problem_.rank_count();
    std::vector<uint32_t> key_of_rank(ranks);
    for (uint32_t r = 0; r < ranks; ++r) key_of_rank[r] = KeyOf(mapping_[r].value());
    const uint32_t keys = std::max(problem_.places->count(), fabric_.switch_count() + 1);
    const std::vector<uint32_t> order = NumbersByKey(key_of_rank, keys);
    for (uint32_t i = 0; i < ranks;) {
      const uint32_t key = key_of_rank[order[i]];
      DestinationFlows destination{};
      for (; i < ranks && key_of_rank[order[i]] == key; ++i) {
        RETURN_IF_ERROR(Hear(order[i], destination));
      }
      if (!speakers_.empty()) RETURN_IF_ERROR(Push(destination, push));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr uint32_t kNoSwitch = 0xffffffff;
  struct Site {  // of a place
    uint32_t bundle, leaf, uplink;
  };

  uint32_t KeyOf(uint32_t place) const {
    if (end_ == FlowsEndAt::kEndpoints) return place;
    const uint32_t leaf = sites_[place].leaf;
    return leaf == kNoSwitch ? fabric_.switch_count() : leaf;
  }

  // On two bundles of a host that no cable joins.
  bool OnPartsOfOneHost(PlaceIndex a, PlaceIndex b) const {
    return fabric_.StayWithinHost(problem_.places->endpoint(a), problem_.places->endpoint(b));
  }

  // What a rank hears from all others.
  absl::Status Hear(uint32_t rank, DestinationFlows& destination) {
    const PlaceIndex here = mapping_[rank];
    const Site& site = sites_[here.value()];
    double heard = 0;
    for (const Exchange& exchange : problem_.pattern->exchanges(rank)) {
      if (exchange.in_bytes == 0) continue;
      const PlaceIndex from = mapping_[exchange.peer];
      const Site& speaker = sites_[from.value()];
      if (speaker.bundle == site.bundle || (in_parts_ && OnPartsOfOneHost(from, here))) continue;
      if (speaker.leaf == kNoSwitch || site.leaf == kNoSwitch) {
        RETURN_IF_ERROR(AlongTheCable(from, here, exchange.in_bytes));
        continue;
      }
      traffic_.bytes[speaker.uplink] += exchange.in_bytes;
      heard += exchange.in_bytes;
      if (flow_of_switch_[speaker.leaf] == 0) speakers_.push_back(speaker.leaf);
      flow_of_switch_[speaker.leaf] += exchange.in_bytes;
      destination.from = problem_.places->endpoint(from);
      destination.to = problem_.places->endpoint(here);
      destination.to_switch = SwitchIndex(site.leaf);
    }
    if (heard > 0) traffic_.bytes[Fabric::Reverse(ChannelIndex(site.uplink)).value()] += heard;
    return absl::OkStatus();
  }

  absl::Status Push(const DestinationFlows& destination,
                    absl::FunctionRef<absl::Status(const DestinationFlows&)> push) {
    flows_.clear();
    for (const uint32_t leaf : speakers_) {
      flows_.push_back({SwitchIndex(leaf), flow_of_switch_[leaf]});
      flow_of_switch_[leaf] = 0;
    }
    speakers_.clear();
    DestinationFlows gathered = destination;
    gathered.flows = flows_;
    return push(gathered);
  }

  // Between endpoints of which one has no switch: the cable that joins them, or nothing at all.
  absl::Status AlongTheCable(PlaceIndex from, PlaceIndex to, double bytes) {
    path_.clear();
    RETURN_IF_ERROR(
        problem_.snapshot->routes->Append(fabric_.Vertex(problem_.places->endpoint(from)),
                                          fabric_.Vertex(problem_.places->endpoint(to)), path_));
    for (const ChannelIndex c : path_) traffic_.bytes[c.value()] += bytes;
    traffic_.longest = std::max(traffic_.longest, static_cast<uint32_t>(path_.size()));
    return absl::OkStatus();
  }

  const MappingProblem& problem_;
  const Fabric& fabric_;
  absl::Span<const PlaceIndex> mapping_;
  FlowsEndAt end_;
  LinkTraffic& traffic_;
  const bool in_parts_;                 // the fabric
  std::vector<Site> sites_;             // [place]
  std::vector<double> flow_of_switch_;  // to the present destination
  std::vector<uint32_t> speakers_;      // switches whose flow is above 0
  std::vector<SwitchFlow> flows_;
  std::vector<ChannelIndex> path_;
};

}  // namespace

absl::Status ForEachDestination(const MappingProblem& problem, absl::Span<const PlaceIndex> mapping,
                                FlowsEndAt end, LinkTraffic& traffic,
                                absl::FunctionRef<absl::Status(const DestinationFlows&)> push) {
  return Gatherer(problem, mapping, end, traffic).Run(push);
}

absl::Status NoPath(const Routes& routes, EndpointIndex from, EndpointIndex to) {
  const Fabric& fabric = routes.fabric();
  std::vector<ChannelIndex> path;
  RETURN_IF_ERROR(routes.Append(fabric.Vertex(from), fabric.Vertex(to), path));
  return absl::NotFoundError(absl::StrCat(
      "no shortest path of fewer than 255 links from ", Describe(fabric, fabric.Vertex(from)),
      " to ", Describe(fabric, fabric.Vertex(to)), ": choose the routes as the traffic's model"));
}

// The fast approximation of congestion (Hoefler 2011, algorithm 3): every pair in turn takes, among
// its shortest paths, the one whose links carry least so far.
//
//     s --3-- a --1-- t        rho of the links so far: over a 3 + 1, over b 2 + 0: b, whose links
//      \             /         rise by bytes / capacity
//       2 --- b --- 0
//
// Departures. Distances between switches are known here, so we go down them one layer after another
// and need neither Dijkstra's queue nor Hoefler's w^, which makes it prefer fewer links. What one
// leaf switch sends to one place is one flow. The order is that of the places that are sent to,
// then of those that send. Links of hosts are no choice and do not enter rho.
//
// O(flows * channels on shortest paths between their ends).

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

absl::Status OverLeastLoadedPaths(const MappingProblem& problem,
                                  absl::Span<const PlaceIndex> mapping, LinkTraffic& traffic) {
  LeastLoaded paths(problem, traffic);
  return ForEachDestination(problem, mapping, FlowsEndAt::kEndpoints, traffic,
                            [&](const DestinationFlows& flows) { return paths.Push(flows); });
}

}  // namespace coppice
