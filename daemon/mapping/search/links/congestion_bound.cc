#include "daemon/mapping/search/links/congestion_bound.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "daemon/mapping/link_traffic.h"
#include "daemon/mapping/search/links/least_cut.h"
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

namespace {

constexpr uint32_t kMaxRanks = 4096;          // a search looks at all of them for each node
constexpr size_t kMaxKinds = 64;              // that a short search is made for
constexpr uint64_t kShortVisits = 1'000'000;  // ranks looked at by all short searches together
constexpr double kEqual = 1 - 1e-12;          // the same but for rounding

}  // namespace

CongestionProof::CongestionProof(const MappingProblem& problem)
    : problem_(problem),
      cuts_(problem.rank_count() > kMaxRanks || problem.pattern->pair_count() == 0
                ? std::vector<PlaceCut>()
                : FindPlaceCuts(problem)) {
  std::map<std::tuple<uint32_t, uint32_t, double, double>, size_t> known;
  for (const PlaceCut& cut : cuts_) {
    const auto [at, added] = known.try_emplace(
        {cut.least_ranks, cut.most_ranks, cut.out_capacity, cut.in_capacity}, kinds_.size());
    if (added) kinds_.emplace_back();
    kinds_[at->second].cuts.push_back(&cut);
  }
}

CongestionBound CongestionProof::BoundOf(const Kind& kind, double enough, uint64_t& nodes,
                                         const SearchControl& control) const {
  const PlaceCut& cut = *kind.cuts[0];
  LeastCut search(*problem_.pattern, cut.least_ranks, cut.most_ranks, 1 / cut.out_capacity,
                  1 / cut.in_capacity);
  const double value = search.AtLeast(enough, nodes, control);
  const std::string ranks = cut.least_ranks == cut.most_ranks
                                ? absl::StrFormat("%d", cut.most_ranks)
                                : absl::StrFormat("%d to %d", cut.least_ranks, cut.most_ranks);
  return {value, absl::StrFormat("what any %s ranks %s exchange with the others over the %g Gb/s "
                                 "that join them",
                                 ranks, cut.name, std::min(cut.out_capacity, cut.in_capacity))};
}

CongestionBound CongestionProof::ShortBound() const {
  CongestionBound best;
  const size_t count = std::min(kinds_.size(), kMaxKinds);
  for (size_t k = 0; k < count; ++k) {
    uint64_t nodes = kShortVisits / (count * problem_.rank_count());
    CongestionBound bound =
        BoundOf(kinds_[k], std::numeric_limits<double>::infinity(), nodes, SearchControl());
    if (bound.value > best.value) best = std::move(bound);
  }
  return best;
}

double CongestionProof::ValueOf(const PlaceCut& cut, const Mapping& mapping) const {
  double out = 0, in = 0;
  const auto inside = [&](uint32_t rank) {
    return std::binary_search(cut.places.begin(), cut.places.end(), mapping[rank].value());
  };
  for (uint32_t r = 0; r < mapping.size(); ++r) {
    if (!inside(r)) continue;
    for (const Exchange& e : problem_.pattern->exchanges(r)) {
      if (inside(e.peer)) continue;
      out += e.out_bytes;
      in += e.in_bytes;
    }
  }
  return std::max(out / cut.out_capacity, in / cut.in_capacity);
}

std::vector<const CongestionProof::Kind*> CongestionProof::Candidates(const Mapping& mapping,
                                                                      double congestion) const {
  std::vector<const Kind*> candidates;
  for (const Kind& kind : kinds_) {
    const bool full = std::all_of(kind.cuts.begin(), kind.cuts.end(), [&](const PlaceCut* cut) {
      return ValueOf(*cut, mapping) >= congestion * kEqual;
    });
    if (full) candidates.push_back(&kind);
  }
  return candidates;
}

CongestionBound CongestionProof::Prove(const Mapping& mapping, double congestion, uint64_t nodes,
                                       const SearchControl& control) const {
  CongestionBound best;
  const std::vector<const Kind*> candidates = Candidates(mapping, congestion);
  for (const Kind* kind : candidates) {
    uint64_t share = nodes / candidates.size();
    CongestionBound bound = BoundOf(*kind, congestion * kEqual, share, control);
    if (bound.value > best.value) best = std::move(bound);
    if (best.value >= congestion * kEqual || control.stopped()) break;
  }
  return best;
}

}  // namespace coppice
