#include "daemon/mapping/search/links/congestion_bound.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "daemon/mapping/link_traffic.h"
#include "daemon/mapping/search/links/congestion_proof.h"
#include "daemon/mapping/search/links/least_leaving.h"
#include "daemon/mapping/search/links/traffic_routes.h"

namespace coppice {
namespace {

constexpr uint32_t kNodes = 2048;  // of the search for what a host sends at least, all ranks

// Hosts of one kind: how many ranks sit on one, and what a port of theirs carries. A host with
// several ports counts each as a place of its own, beside which all of the host's ranks sit; ports
// on different switches, between which bytes cross links, as several hosts.
using HostKind = std::pair<uint32_t, double>;

struct Hosts {
  std::set<HostKind> kinds;
  std::vector<double> ports;  // their capacities, the fastest first
  double capacity = 0;        // of all ports
  uint32_t most_room = 0;
  bool of_one_place = true;  // each
};

Hosts FindHosts(const MappingProblem& problem, absl::Span<const double> capacities,
                TrafficDirection direction) {
  const Fabric& fabric = *problem.snapshot->fabric;
  const Places& places = *problem.places;
  absl::flat_hash_map<uint32_t, uint32_t> room;
  for (uint32_t p = 0; p < places.count(); ++p) {
    room[LinklessSet(fabric, places.endpoint(PlaceIndex(p)))] += places.capacity(PlaceIndex(p));
  }
  Hosts hosts;
  for (uint32_t p = 0; p < places.count(); ++p) {
    const EndpointIndex e = places.endpoint(PlaceIndex(p));
    const ChannelIndex out = fabric.channels(fabric.Vertex(e)).front().index;
    const ChannelIndex c = direction == TrafficDirection::kOut ? out : Fabric::Reverse(out);
    const uint32_t ranks = room[LinklessSet(fabric, e)];
    hosts.kinds.insert({ranks, capacities[c.value()]});
    hosts.capacity += capacities[c.value()];
    hosts.ports.push_back(capacities[c.value()]);
    hosts.most_room = std::max(hosts.most_room, ranks);
    hosts.of_one_place &= ranks == places.capacity(PlaceIndex(p));
  }
  std::sort(hosts.ports.begin(), hosts.ports.end(), std::greater<>());
  return hosts;
}

// By what each rank sends itself, whoever sits beside it.
CongestionBound BoundOfRanks(const MappingProblem& problem, const Hosts& hosts,
                             TrafficDirection direction) {
  const bool out = direction == TrafficDirection::kOut;
  CongestionBound bound;
  double sum = 0;
  std::vector<double> bytes;
  for (uint32_t r = 0; r < problem.rank_count(); ++r) {
    bytes.clear();
    for (const Exchange& exchange : problem.pattern->exchanges(r)) {
      bytes.push_back(out ? exchange.out_bytes : exchange.in_bytes);
    }
    std::sort(bytes.begin(), bytes.end());  // leaving[n]: of all but the n heaviest
    std::vector<double> leaving(bytes.size() + 1, 0.0);
    for (size_t i = 0; i < bytes.size(); ++i) {
      leaving[bytes.size() - i - 1] = leaving[bytes.size() - i] + bytes[i];
    }
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [ranks, capacity] : hosts.kinds) {
      least = std::min(least, leaving[std::min<size_t>(ranks - 1, bytes.size())] / capacity);
    }
    sum += leaving[std::min<size_t>(hosts.most_room - 1, bytes.size())];
    if (least > bound.value) {
      bound = {least,
               absl::StrFormat("what rank %d %s over its own port", r, out ? "sends" : "receives")};
    }
  }
  if (sum / hosts.capacity > bound.value) {
    bound = {sum / hosts.capacity,
             absl::StrFormat("what all ranks %s over all ports", out ? "send" : "receive")};
  }
  return bound;
}

// By what the ranks of one host send together; every host is one place.
CongestionBound BoundOfHosts(const MappingProblem& problem, const Hosts& hosts,
                             TrafficDirection direction, const CongestionBound& floor) {
  LeastLeaving leaving(*problem.pattern, direction, hosts.most_room);
  std::vector<std::pair<double, uint32_t>> ranks;
  for (uint32_t r = 0; r < problem.rank_count(); ++r)
    ranks.emplace_back(leaving.AloneAtLeast(r), r);
  std::sort(ranks.begin(), ranks.end(), std::greater<>());
  CongestionBound bound = floor;
  const char* const verb = direction == TrafficDirection::kOut ? "sends" : "receives";
  uint32_t nodes = kNodes;
  for (auto& [bytes, r] : ranks) {
    bytes = leaving.AtLeast(r, bound.value * hosts.ports.back(), nodes);
    if (bytes / hosts.ports[0] <= bound.value) continue;
    bound = {bytes / hosts.ports[0], absl::StrFormat("what the host of rank %d %s", r, verb)};
  }
  std::sort(ranks.begin(), ranks.end(), std::greater<>());
  for (uint32_t k = 0; k < ranks.size(); ++k) {
    const double value = ranks[k].first / hosts.ports[k / hosts.most_room];
    if (value <= bound.value) continue;
    bound = {value,
             absl::StrFormat("what the hosts of the %d heaviest ranks %s over the slowest "
                             "of their ports",
                             k + 1, direction == TrafficDirection::kOut ? "send" : "receive")};
  }
  return bound;
}

CongestionBound BoundOf(const MappingProblem& problem, absl::Span<const double> capacities,
                        TrafficDirection direction) {
  const Hosts hosts = FindHosts(problem, capacities, direction);
  const CongestionBound bound = BoundOfRanks(problem, hosts, direction);
  return hosts.of_one_place ? BoundOfHosts(problem, hosts, direction, bound) : bound;
}

}  // namespace

CongestionBound FindCongestionBound(const MappingProblem& problem) {
  const std::vector<double> capacities = ChannelCapacities(problem);
  CongestionBound out = BoundOf(problem, capacities, TrafficDirection::kOut);
  CongestionBound in = BoundOf(problem, capacities, TrafficDirection::kIn);
  CongestionBound cut = CongestionProof(problem).ShortBound();
  return std::max(
      {std::move(out), std::move(in), std::move(cut)},
      [](const CongestionBound& a, const CongestionBound& b) { return a.value < b.value; });
}

}  // namespace coppice
