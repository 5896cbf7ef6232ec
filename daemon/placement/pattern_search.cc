// All sets of hosts by rising cost without traffic; on each, ranks are seated one after another,
// those that send most first:
//
//     sets   cost 1.0   1.2   1.2 | 3.5        3.5 and the least traffic that any set has is no
//     less
//            |          |         |            than the best: all others are dearer still
//     ranks  a: h1 h2 x              x a channel is as full as what would cost as much as the best
//            b:    h1 ...
//
// Bytes on channels only grow as ranks are added, so that a branch ends where one is too full. By
// even shares of all shortest paths, hosts of one leaf switch with equal ports are alike as long as
// they are empty: the first of them stands for all.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/link_traffic.h"
#include "daemon/mapping/search/links/congestion_bound.h"
#include "daemon/mapping/search/links/traffic_routes.h"
#include "daemon/placement/placement_request.h"
#include "daemon/placement/placement_search.h"

namespace coppice {
namespace {

// Seats the ranks of `problem`'s pattern on some of its places.
class OrderWalk {
 public:
  OrderWalk(const MappingProblem& problem, uint64_t branches, const SearchControl& control)
      : pattern_(*problem.pattern),
        control_(control),
        routes_(problem),
        is_even_(problem.traffic == TrafficModel::kEvenShortestPaths),
        count_(problem.places->count()),
        capacity_(problem.places->capacity(PlaceIndex(0))),
        order_(pattern_.HeaviestFirst()),
        branches_(branches),
        per_byte_(ChannelCapacities(problem)),
        congestion_(per_byte_.size(), 0),
        flows_(size_t{count_} * count_),
        seats_(pattern_.rank_count(), kNone) {
    for (double& capacity : per_byte_) capacity = 1 / capacity;
  }

  // The order on `places` with the least congestion, [rank] place, if that is below `limit`, which
  // then is that congestion.
  std::optional<std::vector<uint32_t>> Run(const std::vector<uint32_t>& places, double& limit) {
    places_ = places;
    room_.assign(places.size(), capacity_);
    best_.reset();
    limit_ = limit;
    Seat(0, 0);
    limit = limit_;
    return std::move(best_);
  }
  // All that was asked for has been looked at.
  bool is_complete() const { return branches_ > 0; }

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  struct Flow {
    uint32_t channel;
    double share;  // of a byte, as congestion
  };
  struct Way {
    std::vector<Flow> flows;
    bool is_known = false, is_there = false;
  };

  const Way& WayOf(uint32_t from, uint32_t to) {
    Way& way = flows_[size_t{from} * count_ + to];
    if (way.is_known) return way;
    way.is_known = true;
    way.is_there = routes_.ForEachChannel(from, to, [&](uint32_t channel, double share) {
      way.flows.push_back({channel, share * per_byte_[channel]});
    });
    return way;
  }

  // False: no way, or a channel that is too full.
  bool Send(uint32_t from, uint32_t to, double bytes, double& greatest) {
    if (bytes == 0 || from == to) return true;
    const Way& way = WayOf(from, to);
    if (!way.is_there) return false;
    for (const Flow& flow : way.flows) {
      undo_.emplace_back(flow.channel, congestion_[flow.channel]);
      congestion_[flow.channel] += bytes * flow.share;
      greatest = std::max(greatest, congestion_[flow.channel]);
    }
    return !IsTooFull(greatest);
  }

  bool IsTooFull(double congestion) const { return congestion >= limit_ * (1 - kEqualCost); }

  bool Join(uint32_t rank, uint32_t place, double& greatest) {
    for (const Exchange& x : pattern_.exchanges(rank)) {
      const uint32_t at = seats_[x.peer];
      if (at == kNone) continue;
      if (!Send(place, at, x.out_bytes, greatest) || !Send(at, place, x.in_bytes, greatest)) {
        return false;
      }
    }
    return true;
  }

  // The place is empty, and so is one before it that is like it.
  bool IsLikeAnEarlierOne(size_t i) const {
    if (!is_even_ || room_[i] < capacity_) return false;
    const auto key = [&](size_t j) {
      const uint32_t up = routes_.uplink(places_[j]);
      return std::tuple(routes_.leaf(places_[j]), per_byte_[up], per_byte_[up ^ 1]);
    };
    if (routes_.leaf(places_[i]) == TrafficRoutes::kNoSwitch) return false;
    for (size_t j = 0; j < i; ++j) {
      if (room_[j] == capacity_ && key(i) == key(j)) return true;
    }
    return false;
  }

  bool Spend() {
    if (branches_ > 0) --branches_;
    if ((branches_ & 63) == 0 && control_.stopped()) branches_ = 0;
    return branches_ > 0;
  }

  void Seat(size_t depth, double greatest) {
    if (IsTooFull(greatest)) return;
    if (depth == order_.size()) {
      best_ = seats_;
      limit_ = greatest;
      return;
    }
    const uint32_t rank = order_[depth];
    for (size_t i = 0; i < places_.size(); ++i) {
      if (room_[i] == 0 || IsLikeAnEarlierOne(i)) continue;
      if (!Spend()) return;
      const size_t before = undo_.size();
      double fullest = greatest;
      if (Join(rank, places_[i], fullest)) {
        seats_[rank] = places_[i];
        --room_[i];
        Seat(depth + 1, fullest);
        ++room_[i];
        seats_[rank] = kNone;
      }
      for (; undo_.size() > before; undo_.pop_back()) {
        congestion_[undo_.back().first] = undo_.back().second;
      }
    }
  }

  const Pattern& pattern_;
  const SearchControl& control_;
  TrafficRoutes routes_;
  const bool is_even_;
  const uint32_t count_, capacity_;
  const std::vector<uint32_t> order_;
  uint64_t branches_;
  std::vector<double> per_byte_, congestion_;  // [channel]
  std::vector<Way> flows_;                     // [from place][to place]
  std::vector<uint32_t> seats_;                // [rank] place, or kNone
  std::vector<std::pair<uint32_t, double>> undo_;
  std::vector<uint32_t> places_, room_;
  std::optional<std::vector<uint32_t>> best_;
  double limit_ = 0;
};

// Open hosts leaf switch by leaf switch, and all sets of them that meet the constraints.
class HostSets {
 public:
  struct Set {
    double cost = 0;                // without traffic
    std::vector<uint32_t> members;  // positions in hosts(), ascending
  };

  explicit HostSets(const PlacementQuestion& question)
      : question_(question), n_(question.request.constraints.host_count) {
    const PlacementIndex& index = question.index;
    scopes_ = FindScopes(index, question.open, question.request.constraints);
    for (const OpenLeaf& leaf : question.open.leaves) {
      starts_.push_back(static_cast<uint32_t>(hosts_.size()));
      const auto of_leaf = question.open.hosts_of(leaf);
      hosts_.insert(hosts_.end(), of_leaf.begin(), of_leaf.end());
      std::sort(hosts_.end() - static_cast<ptrdiff_t>(of_leaf.size()), hosts_.end());
    }
    starts_.push_back(static_cast<uint32_t>(hosts_.size()));
  }

  const std::vector<HostIndex>& hosts() const { return hosts_; }

  // How many there are at most; no more than `most` + 1.
  uint64_t CountUpTo(uint64_t most) const {
    double sets = 0;
    for (const OpenScope& scope : scopes_) {
      const uint32_t size = starts_[scope.end] - starts_[scope.begin];
      if (size < n_) continue;
      const uint32_t fewer = std::min(n_, size - n_);  // sets of those left out are as many
      double choose = 1;
      for (uint32_t i = 0; i < fewer && choose <= static_cast<double>(most); ++i) {
        choose = choose * (size - i) / (i + 1);
      }
      sets += std::round(choose);
    }
    return sets <= static_cast<double>(most) ? static_cast<uint64_t>(sets) : most + 1;
  }

  // By rising cost. nullopt: ended by `control`.
  std::optional<std::vector<Set>> All(const SearchControl& control) {
    sets_.clear();
    for (const OpenScope& scope : scopes_) {
      members_.clear();
      if (!Choose(starts_[scope.begin], starts_[scope.end], control)) return std::nullopt;
    }
    absl::c_stable_sort(sets_, [](const Set& a, const Set& b) { return a.cost < b.cost; });
    return std::move(sets_);
  }

  std::vector<HostIndex> HostsOf(const std::vector<uint32_t>& members) const {
    std::vector<HostIndex> hosts;
    for (const uint32_t m : members) hosts.push_back(hosts_[m]);
    return hosts;
  }

 private:
  bool Choose(uint32_t from, uint32_t end, const SearchControl& control) {
    if (members_.size() == n_) {
      if (control.stopped()) return false;
      Keep();
      return true;
    }
    const auto missing = static_cast<uint32_t>(n_ - members_.size());
    for (uint32_t next = from; next + missing <= end; ++next) {
      members_.push_back(next);
      const bool goes_on = Choose(next + 1, end, control);
      members_.pop_back();
      if (!goes_on) return false;
    }
    return true;
  }

  void Keep() {
    const std::vector<HostIndex> hosts = HostsOf(members_);
    const PlacementConstraints& c = question_.request.constraints;
    if (!CheckPlacement(question_.snapshot, question_.occupancy, c, hosts).ok()) return;
    sets_.push_back({question_.Measure(hosts).cost, members_});
  }

  const PlacementQuestion& question_;
  const uint32_t n_;
  std::vector<OpenScope> scopes_;
  std::vector<HostIndex> hosts_;
  std::vector<uint32_t> starts_;  // [position in open.leaves + 1] into hosts_
  std::vector<uint32_t> members_;
  std::vector<Set> sets_;
};

}  // namespace

absl::StatusOr<bool> SearchPatternExactly(const PlacementQuestion& question,
                                          const PatternLimits& limits, const SearchControl& control,
                                          PatternChoice& best) {
  if (question.request.pattern->rank_count() > limits.ranks) return false;
  HostSets sets(question);
  if (sets.CountUpTo(limits.sets) > limits.sets) return false;
  ASSIGN_OR_RETURN(const MappingProblem problem, PatternProblem(question, sets.hosts()));
  const std::optional<std::vector<HostSets::Set>> all = sets.All(control);
  if (!all) return false;
  const double weight = question.request.objective.traffic * TrafficOf(question, 1);
  const double least = weight * FindCongestionBound(problem).value;
  OrderWalk walk(problem, limits.branches, control);
  for (const HostSets::Set& set : *all) {
    const double left = best.cost - set.cost;  // for traffic
    if (left <= least + kEqualCost * (1 + std::abs(best.cost))) break;
    double congestion = left / weight;
    const auto seats = walk.Run(set.members, congestion);
    if (seats) {
      best = {sets.HostsOf(set.members), set.cost, {}, congestion, set.cost + weight * congestion};
      for (const uint32_t seat : *seats) {
        const auto at = absl::c_lower_bound(set.members, seat);
        best.mapping.emplace_back(static_cast<uint32_t>(at - set.members.begin()));
      }
    }
    if (!walk.is_complete()) return false;
  }
  return true;
}

absl::StatusOr<MappingProblem> PatternProblem(const PlacementQuestion& question,
                                              absl::Span<const HostIndex> hosts) {
  const Fabric& fabric = *question.snapshot.fabric;
  std::vector<EndpointIndex> endpoints;
  for (const HostIndex h : hosts) endpoints.push_back(fabric.endpoints_of_host(h).front());
  MappingProblem problem;
  problem.pattern = question.request.pattern;
  ASSIGN_OR_RETURN(problem.places,
                   Places::OfEndpoints(fabric, endpoints, question.request.ranks_per_host));
  ASSIGN_OR_RETURN(problem.distances,
                   PlaceDistances::Hops(*problem.places, question.snapshot.routes->distances()));
  problem.snapshot = std::make_shared<const Snapshot>(question.snapshot);
  // Shortest paths are a guess at what the subnet will do: then all of them, in equal shares.
  problem.traffic = question.snapshot.routes->kind() == RouteKind::kShortestPath
                        ? TrafficModel::kEvenShortestPaths
                        : TrafficModel::kRoutes;
  problem.use_load = !question.snapshot.load->empty();
  problem.objective.congestion = 1;
  return problem;
}

double TrafficOf(const PlacementQuestion& question, double max_congestion) {
  const double bytes = question.request.pattern->total_bytes();
  const double least = question.snapshot.fabric->least_capacity_gbps();
  if (bytes <= 0) return 0;
  return max_congestion * question.request.constraints.host_count * (least > 0 ? least : 1) / bytes;
}

}  // namespace coppice
