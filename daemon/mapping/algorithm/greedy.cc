// Greedy graph embedding (Hoefler and Snir, "Generic topology mapping strategies for large-scale
// parallel architectures", ICS 2011, section 3.1, algorithm 1).
//
//     placed   u --9-- m     the heaviest edge that leaves what is placed: m goes to the closest
//              |             place with room; among the closest, over links that carry least
//              5
//              |             S: ranks not placed    Q: edges from placed ranks into S
//              n             rho(f): bytes / capacity on channel f so far
//
// S starts with all ranks; the heaviest rank opens at the start place, and again whenever Q is
// empty.
//
// Departures. (1) Hoefler's Dijkstra weighs a link with rho plus a constant so great that fewer
// links always win; we search layer by layer. (2) A link costs rho plus what the edge itself would
// put on it: so an idle fabric already tells fast links from slow ones. (3) The search starts at
// the place of u, the rank that m is drawn to; with near = 0 at the place filled last, as printed.
// (4) rho grows by all exchanges of m with placed ranks, over the fabric's routes, not only by the
// edge drawn. (5) Several start places are tried; of equals the first is taken.
//
// O(P * (E_H + degree * length) + E_G log E_G) for a start, most searches ending in a few layers.
#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "daemon/base/status_macros.h"
#include "daemon/mapping/algorithm/algorithms.h"
#include "daemon/mapping/link_traffic.h"
#include "daemon/mapping/mapping_metrics.h"
#include "daemon/mapping/search/links/traffic_routes.h"
#include "daemon/mapping/search_control.h"

namespace coppice {
namespace {

struct Drawn {  // an edge from a placed rank into S
  double bytes;
  uint32_t rank, to_placed;
  bool operator<(const Drawn& other) const {
    return std::tie(bytes, other.rank, other.to_placed) < std::tie(other.bytes, rank, to_placed);
  }
};

class Greedy {
 public:
  Greedy(const MappingProblem& problem, bool near_partner)
      : problem_(problem),
        fabric_(*problem.snapshot->fabric),
        near_partner_(near_partner),
        capacities_(ChannelCapacities(problem)),
        routes_(problem),
        rho_(fabric_.channel_count(), 0.0),
        cost_(fabric_.switch_count(), kFar),
        depth_(fabric_.switch_count(), kUnreached),
        places_of_switch_(fabric_.switch_count()) {
    const Places& places = *problem.places;
    for (uint32_t p = 0; p < places.count(); ++p) {
      room_.push_back(places.capacity(PlaceIndex(p)));
      if (routes_.leaf(p) != TrafficRoutes::kNoSwitch) {
        places_of_switch_[routes_.leaf(p)].push_back(p);
      }
    }
  }

  Mapping Run(uint32_t start, const SearchControl& control) {
    const Pattern& pattern = *problem_.pattern;
    mapping_.assign(pattern.rank_count(), PlaceIndex(0));
    placed_.assign(pattern.rank_count(), 0);
    uint32_t last = start;
    for (const uint32_t opener : pattern.HeaviestFirst()) {
      if (placed_[opener] != 0) continue;
      last = Put(opener, WithRoom(last, 0));
      while (!queue_.empty()) {
        const Drawn drawn = queue_.top();
        queue_.pop();
        if (placed_[drawn.rank] != 0) continue;
        const uint32_t from = near_partner_ ? mapping_[drawn.to_placed].value() : last;
        const bool hurry = control.stopped();
        last = Put(drawn.rank, hurry ? AnyWithRoom() : WithRoom(from, drawn.bytes));
      }
    }
    return std::move(mapping_);
  }

 private:
  static constexpr double kFar = std::numeric_limits<double>::infinity();
  static constexpr uint32_t kUnreached = 0xffffffff;

  uint32_t Put(uint32_t rank, uint32_t place) {
    mapping_[rank] = PlaceIndex(place);
    placed_[rank] = 1;
    --room_[place];
    for (const Exchange& exchange : problem_.pattern->exchanges(rank)) {
      if (placed_[exchange.peer] == 0) {
        queue_.push({exchange.both(), exchange.peer, rank});
        continue;
      }
      const uint32_t peer = mapping_[exchange.peer].value();
      Load(place, peer, exchange.out_bytes);
      Load(peer, place, exchange.in_bytes);
    }
    return place;
  }

  void Load(uint32_t from, uint32_t to, double bytes) {
    if (bytes == 0) return;
    routes_.ForEachChannel(
        from, to, [&](uint32_t c, double share) { rho_[c] += bytes * share / capacities_[c]; });
  }

  uint32_t AnyWithRoom() {
    while (room_[first_with_room_] == 0) ++first_with_room_;
    return first_with_room_;
  }

  double CostOf(ChannelIndex c, double bytes) const {
    return rho_[c.value()] + bytes / capacities_[c.value()];
  }

  // The closest place to `from` with room, and of the closest the one over the least loaded links.
  uint32_t WithRoom(uint32_t from, double bytes) {
    if (room_[from] > 0) return from;
    if (routes_.leaf(from) == TrafficRoutes::kNoSwitch) return AnyWithRoom();
    layer_.assign(1, routes_.leaf(from));
    reached_ = layer_;
    cost_[layer_[0]] = 0;
    depth_[layer_[0]] = 0;
    std::optional<uint32_t> best;
    while (!layer_.empty() && !best) {
      best = BestInLayer(bytes);
      if (!best) NextLayer(bytes);
    }
    for (const uint32_t s : reached_) {
      cost_[s] = kFar;
      depth_[s] = kUnreached;
    }
    return best ? *best : AnyWithRoom();
  }

  std::optional<uint32_t> BestInLayer(double bytes) {
    std::optional<uint32_t> best;
    double least = kFar;
    for (const uint32_t s : layer_) {
      std::vector<uint32_t>& places = places_of_switch_[s];
      while (!places.empty() && room_[places.back()] == 0) places.pop_back();
      for (const uint32_t p : places) {
        if (room_[p] == 0) continue;
        const double cost =
            cost_[s] + CostOf(Fabric::Reverse(ChannelIndex(routes_.uplink(p))), bytes);
        if (best && std::tie(cost, p) >= std::tie(least, *best)) continue;
        least = cost;
        best = p;
      }
    }
    return best;
  }

  // Only channels into the next layer count: they are on paths of the fewest links.
  void NextLayer(double bytes) {
    next_.clear();
    for (const uint32_t s : layer_) {
      for (const Channel& channel : fabric_.switch_channels(SwitchIndex(s))) {
        const uint32_t to = channel.to.value();
        if (depth_[to] == kUnreached) {
          depth_[to] = depth_[s] + 1;
          next_.push_back(to);
          reached_.push_back(to);
        }
        if (depth_[to] != depth_[s] + 1) continue;
        cost_[to] = std::min(cost_[to], cost_[s] + CostOf(channel.index, bytes));
      }
    }
    layer_.swap(next_);
  }

  const MappingProblem& problem_;
  const Fabric& fabric_;
  const bool near_partner_;
  const std::vector<double> capacities_;
  TrafficRoutes routes_;
  std::vector<double> rho_;     // [channel]
  std::vector<uint32_t> room_;  // [place]
  uint32_t first_with_room_ = 0;
  Mapping mapping_;
  std::vector<uint8_t> placed_;  // [rank]
  std::priority_queue<Drawn> queue_;
  std::vector<double> cost_;     // [switch] of the search at hand, as is
  std::vector<uint32_t> depth_;  // [switch]
  std::vector<std::vector<uint32_t>> places_of_switch_;
  std::vector<uint32_t> layer_, next_, reached_;
};

std::vector<uint32_t> StartPlaces(const MappingProblem& problem, const MethodOptions& options) {
  const uint32_t count = problem.places->count();
  if (options.Is("start")) return {std::min(count, options.Count("start")) - 1};
  const uint64_t starts = std::min(count, options.Count("starts"));
  std::vector<uint32_t> places;
  for (uint64_t i = 0; i < starts; ++i) {
    places.push_back(static_cast<uint32_t>(i * count / starts));
  }
  return places;
}

struct Tried {
  absl::Status status;
  Mapping mapping;
  double score = std::numeric_limits<double>::infinity();
};

}  // namespace

absl::StatusOr<Mapped> RunGreedy(const MappingProblem& problem, const Mapping&,
                                 const MethodOptions& options, const SearchControl& control) {
  ASSIGN_OR_RETURN(const MappingMeasures present, Measure(problem, problem.present()));
  const std::vector<uint32_t> starts = StartPlaces(problem, options);
  const bool near_partner = options.Is("near");
  std::vector<Tried> attempts(starts.size());
  RunLogicalWorkers(options.threads, static_cast<uint32_t>(starts.size()), [&](uint32_t i) {
    // The first is always made; the others only while there is time.
    if (i > 0 && control.stopped()) return;
    Tried& attempt = attempts[i];
    attempt.mapping = Greedy(problem, near_partner).Run(starts[i], control);
    const absl::StatusOr<MappingMeasures> measures = Measure(problem, attempt.mapping);
    attempt.status = measures.status();
    if (measures.ok()) attempt.score = Score(problem.objective, *measures, present);
  });
  const auto best =
      std::min_element(attempts.begin(), attempts.end(),
                       [](const Tried& a, const Tried& b) { return a.score < b.score; });
  RETURN_IF_ERROR(best->status);
  return Mapped{std::move(best->mapping),
                absl::StrFormat("started at place %d", starts[best - attempts.begin()] + 1)};
}

}  // namespace coppice
