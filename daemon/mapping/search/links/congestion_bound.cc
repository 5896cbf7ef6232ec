// Least cuts by augmenting paths (Edmonds and Karp, J. ACM 19, 1972) over the switches:
//
//     source --> leaf switches of the set --> ... --> leaf switches of others --> sink
//             hosts' cables                cables                           hosts' cables
//
// What is reached in the end is one side of a cut, whose capacity is summed up anew: so that a flow
// that rounding or the bound of work ends early gives a wider cut, and no wrong one. Channels that
// no route between places takes are left out. O(cables) for each path.
#include "daemon/mapping/search/links/congestion_bound.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "daemon/mapping/link_traffic.h"
#include "daemon/mapping/search/groups/groups.h"
#include "daemon/mapping/search/links/least_cut.h"
#include "daemon/mapping/search/links/traffic_routes.h"

namespace coppice {
namespace {

constexpr uint32_t kWalkedPlaces = 256;    // of which all pairs' routes are walked
constexpr uint32_t kGroupedPlaces = 4096;  // that groups by distance are made of
constexpr uint32_t kPairedLeaves = 64;     // of which neighbours are paired
constexpr uint64_t kWork = 8'000'000;      // edges looked at for all cuts together

class Network final {
 public:
  Network(const MappingProblem& problem, TrafficRoutes& routes)
      : fabric_(*problem.snapshot->fabric),
        places_(*problem.places),
        routes_(routes),
        capacities_(ChannelCapacities(problem)),
        edges_of_(fabric_.switch_count() + 2) {
    std::vector<uint8_t> used(fabric_.channel_count(), 1);
    if (problem.traffic == TrafficModel::kRoutes && places_.count() <= kWalkedPlaces) {
      std::fill(used.begin(), used.end(), 0);
      for (uint32_t a = 0; a < places_.count(); ++a) {
        for (uint32_t b = 0; b < places_.count(); ++b) {
          if (a != b) routes.ForEachChannel(a, b, [&](uint32_t c, double) { used[c] = 1; });
        }
      }
    }
    for (uint32_t s = 0; s < fabric_.switch_count(); ++s) {
      for (const Channel& c : fabric_.switch_channels(SwitchIndex(s))) {
        if (used[c.index.value()] == 0 || c.to.value() == s) continue;
        AddEdge(s, c.to.value(), capacities_[c.index.value()]);
      }
    }
    fixed_edges_ = edges_.size();
  }

  // Of the least cut from some places to all others, or back.
  double LeastCut(const std::vector<uint8_t>& inside, bool out) {
    const uint32_t source = fabric_.switch_count(), sink = source + 1;
    double uplinks = 0;
    for (uint32_t p = 0; p < places_.count(); ++p) {
      const bool from = (inside[p] != 0) == out;
      const double capacity = Uplink(p, from);
      if (from) {
        AddEdge(source, routes_.leaf(p), capacity);
      } else {
        AddEdge(routes_.leaf(p), sink, capacity);
      }
      if (inside[p] != 0) uplinks += capacity;
    }
    while (Augment(source, sink)) {
    }
    double cut = 0;
    for (const Edge& e : edges_) {
      if (reached_[e.from] != 0 && reached_[e.to] == 0) cut += e.capacity;
    }
    Restore();
    return std::min(cut, uplinks);
  }

  // Of a place, to its switch or from it.
  double Uplink(uint32_t place, bool out) const {
    return capacities_[routes_.uplink(place) ^ (out ? 0 : 1)];
  }
  bool has_work_left() const { return work_ < kWork; }

 private:
  struct Edge {
    uint32_t from, to;
    double capacity, left;  // [e ^ 1] is its way back, of capacity 0
  };

  void AddEdge(uint32_t from, uint32_t to, double capacity) {
    edges_of_[from].push_back(static_cast<uint32_t>(edges_.size()));
    edges_.push_back({from, to, capacity, capacity});
    edges_of_[to].push_back(static_cast<uint32_t>(edges_.size()));
    edges_.push_back({to, from, 0, 0});
  }

  // Along a shortest path that has room. False: there is none, and `reached_` is the near side.
  bool Augment(uint32_t source, uint32_t sink) {
    reached_.assign(edges_of_.size(), 0);
    came_by_.assign(edges_of_.size(), 0);
    queue_.assign(1, source);
    reached_[source] = 1;
    for (size_t i = 0; i < queue_.size() && reached_[sink] == 0; ++i) {
      for (const uint32_t e : edges_of_[queue_[i]]) {
        ++work_;
        if (edges_[e].left <= 0 || reached_[edges_[e].to] != 0) continue;
        reached_[edges_[e].to] = 1;
        came_by_[edges_[e].to] = e;
        queue_.push_back(edges_[e].to);
      }
    }
    if (reached_[sink] == 0) return false;
    if (!has_work_left()) {
      // Any side without the sink is one of a cut: the source's hosts' cables.
      reached_.assign(edges_of_.size(), 0);
      reached_[source] = 1;
      return false;
    }
    double room = std::numeric_limits<double>::infinity();
    for (uint32_t v = sink; v != source; v = edges_[came_by_[v]].from) {
      room = std::min(room, edges_[came_by_[v]].left);
    }
    for (uint32_t v = sink; v != source; v = edges_[came_by_[v]].from) {
      edges_[came_by_[v]].left -= room;
      edges_[came_by_[v] ^ 1].left += room;
    }
    return true;
  }

  void Restore() {
    while (edges_.size() > fixed_edges_) {
      edges_of_[edges_.back().from].pop_back();
      edges_.pop_back();
    }
    for (Edge& e : edges_) e.left = e.capacity;
  }

  const Fabric& fabric_;
  const Places& places_;
  TrafficRoutes& routes_;
  const std::vector<double> capacities_;
  std::vector<Edge> edges_;
  std::vector<std::vector<uint32_t>> edges_of_;  // [switch, source, sink]
  size_t fixed_edges_ = 0;
  std::vector<uint32_t> came_by_, queue_;
  std::vector<uint8_t> reached_;
  uint64_t work_ = 0;
};

class Finder final {
 public:
  explicit Finder(const MappingProblem& problem)
      : problem_(problem), places_(*problem.places), routes_(problem), network_(problem, routes_) {
    for (uint32_t p = 0; p < places_.count(); ++p) {
      set_of_.push_back(LinklessSet(*problem.snapshot->fabric, places_.endpoint(PlaceIndex(p))));
    }
  }

  std::vector<PlaceCut> Run() {
    if (!routes_.all_have_leaves()) return {};
    std::map<uint32_t, std::vector<uint32_t>> sets, leaves;
    for (uint32_t p = 0; p < places_.count(); ++p) {
      sets[set_of_[p]].push_back(p);
      leaves[routes_.leaf(p)].push_back(p);
    }
    for (auto& [set, places] : sets) {
      set_places_[set] = static_cast<uint32_t>(places.size());
      AddSet(places);
    }
    for (const auto& [leaf, places] : leaves) Add(places, "behind one leaf switch");
    if (leaves.size() <= kPairedLeaves) AddNeighbours(leaves);
    if (places_.count() <= kGroupedPlaces) {
      AddGroups(GroupByCapacity(problem_));
      AddGroups(MakePlaceGroups(places_, *problem_.distances, problem_.snapshot->hierarchy.get()));
    }
    return std::move(cuts_);
  }

 private:
  HostIndex HostOf(uint32_t place) const {
    return problem_.snapshot->fabric->host(places_.endpoint(PlaceIndex(place)));
  }

  // False: any number of ranks may sit there, or all.
  bool SetRanks(PlaceCut& cut) const {
    const uint32_t ranks = problem_.rank_count();
    for (const uint32_t p : cut.places) cut.most_ranks += places_.capacity(PlaceIndex(p));
    const uint32_t elsewhere = places_.slot_count() - cut.most_ranks;
    cut.least_ranks = ranks > elsewhere ? ranks - elsewhere : 0;
    return cut.least_ranks > 0 && cut.most_ranks < ranks;
  }

  // A host's, or those of its ports on one switch.
  void AddSet(const std::vector<uint32_t>& places) {
    PlaceCut cut;
    cut.places = places;
    if (!SetRanks(cut)) return;
    for (const uint32_t p : places) {
      cut.out_capacity += network_.Uplink(p, true);
      cut.in_capacity += network_.Uplink(p, false);
    }
    cut.name =
        absl::StrFormat("on host %s", problem_.snapshot->fabric->host_name(HostOf(places.front())));
    cuts_.push_back(std::move(cut));
  }

  void Add(std::vector<uint32_t> places, const char* where) {
    std::sort(places.begin(), places.end());
    if (!seen_.insert(places).second || !network_.has_work_left()) return;
    PlaceCut cut;
    cut.places = std::move(places);
    if (!SetRanks(cut)) return;
    std::map<uint32_t, uint32_t> of_set;
    std::set<HostIndex> hosts;
    for (const uint32_t p : cut.places) {
      ++of_set[set_of_[p]];
      hosts.insert(HostOf(p));
    }
    for (const auto& [set, count] : of_set) {
      if (count < set_places_[set]) return;  // its ranks reach each other without a cable
    }
    std::vector<uint8_t> inside(places_.count(), 0);
    for (const uint32_t p : cut.places) inside[p] = 1;
    cut.out_capacity = network_.LeastCut(inside, true);
    cut.in_capacity = network_.LeastCut(inside, false);
    if (cut.out_capacity <= 0 || cut.in_capacity <= 0) return;  // no route leads there
    cut.name =
        absl::StrFormat("on %d %s %s", hosts.size(), hosts.size() == 1 ? "host" : "hosts", where);
    cuts_.push_back(std::move(cut));
  }

  void AddNeighbours(const std::map<uint32_t, std::vector<uint32_t>>& leaves) {
    for (const auto& [leaf, places] : leaves) {
      for (const Channel& c : problem_.snapshot->fabric->switch_channels(SwitchIndex(leaf))) {
        const auto other = leaves.find(c.to.value());
        if (other == leaves.end() || other->first <= leaf) continue;
        std::vector<uint32_t> both = places;
        both.insert(both.end(), other->second.begin(), other->second.end());
        Add(std::move(both), "behind two leaf switches");
      }
    }
  }

  void AddGroups(const PlaceGroups& groups) {
    for (const PlaceGroups::Node& node : groups.nodes) {
      if (node.child_count == 0 || node.end - node.begin == places_.count()) continue;
      const absl::Span<const uint32_t> places = groups.places(node);
      Add({places.begin(), places.end()}, "behind a group of leaf switches");
    }
  }

  const MappingProblem& problem_;
  const Places& places_;
  TrafficRoutes routes_;
  Network network_;
  std::vector<uint32_t> set_of_;  // [place] between those of one bytes may cross no link
  std::map<uint32_t, uint32_t> set_places_;
  std::set<std::vector<uint32_t>> seen_;
  std::vector<PlaceCut> cuts_;
};

}  // namespace

std::vector<PlaceCut> FindPlaceCuts(const MappingProblem& problem) { return Finder(problem).Run(); }

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
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [ranks, capacity] : hosts.kinds) {
      least = std::min(least, AllButGreatest(bytes, ranks - 1) / capacity);
    }
    sum += AllButGreatest(bytes, hosts.most_room - 1);
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
    kinds_[at->second].push_back(&cut);
  }
}

CongestionBound CongestionProof::BoundOf(const Kind& kind, double enough, uint64_t& nodes,
                                         const SearchControl& control) const {
  const PlaceCut& cut = *kind[0];
  LeastCut search(*problem_.pattern, cut.least_ranks, cut.most_ranks, 1 / cut.out_capacity,
                  1 / cut.in_capacity);
  const double value = search.AtLeast(enough, nodes, control);
  const std::string ranks = cut.least_ranks == cut.most_ranks
                                ? absl::StrFormat("%d", cut.most_ranks)
                                : absl::StrFormat("%d to %d", cut.least_ranks, cut.most_ranks);
  const bool is_one = cut.most_ranks == 1;
  return {value,
          absl::StrFormat("what any %s %s %s %s with the others over the %g Gb/s that %s", ranks,
                          is_one ? "rank" : "ranks", cut.name, is_one ? "exchanges" : "exchange",
                          std::min(cut.out_capacity, cut.in_capacity),
                          is_one ? "join it" : "join them")};
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
    const auto is_full = [&](const PlaceCut* cut) {
      return ValueOf(*cut, mapping) >= congestion * kEqual;
    };
    if (std::all_of(kind.begin(), kind.end(), is_full)) candidates.push_back(&kind);
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
