#include "daemon/mapping/link_traffic_flows.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

// The ranks, those of one destination together.
std::vector<uint32_t> RanksByKey(absl::Span<const uint32_t> key_of_rank, uint32_t keys) {
  std::vector<uint32_t> begin(keys + 1, 0);
  for (const uint32_t key : key_of_rank) ++begin[key + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<uint32_t> ranks(key_of_rank.size());
  for (uint32_t r = 0; r < ranks.size(); ++r) ranks[begin[key_of_rank[r]]++] = r;
  return ranks;
}

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
    const std::vector<uint32_t> order = RanksByKey(key_of_rank, keys);
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

}  // namespace coppice
