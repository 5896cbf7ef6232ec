// Flows: Dinic, "Algorithm for solution of a problem of maximum flow" (1970). Fabrics are shallow,
// so that a flow takes few rounds. Capacities are integers, Mb/s.
#include "daemon/tree/forest/bound.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max() / 4;

class FlowNetwork {
 public:
  explicit FlowNetwork(uint32_t vertices) : arcs_of_(vertices), level_(vertices), next_(vertices) {}

  // Returns the arc's number; the way back is the next one.
  uint32_t AddArc(uint32_t from, uint32_t to, int64_t capacity) {
    arcs_of_[from].push_back(static_cast<uint32_t>(arcs_.size()));
    arcs_.push_back({to, capacity});
    arcs_of_[to].push_back(static_cast<uint32_t>(arcs_.size()));
    arcs_.push_back({from, 0});
    return static_cast<uint32_t>(arcs_.size() - 2);
  }
  void SetCapacity(uint32_t arc, int64_t capacity) {
    arcs_[arc].left = capacity;
    arcs_[arc + 1].left = 0;
  }

  int64_t Flow(uint32_t from, uint32_t to) {
    int64_t flow = 0;
    while (Layer(from, to)) {
      std::fill(next_.begin(), next_.end(), 0);
      while (const int64_t more = Push(from, to, kNoLimit)) flow += more;
    }
    return flow;
  }
  // After Flow: on the source's side of the least cut.
  bool IsInside(uint32_t vertex) const { return level_[vertex] >= 0; }

 private:
  struct Arc {
    uint32_t to;
    int64_t left;
  };

  bool Layer(uint32_t from, uint32_t to) {
    std::fill(level_.begin(), level_.end(), -1);
    level_[from] = 0;
    order_ = {from};
    for (size_t i = 0; i < order_.size(); ++i) {
      for (const uint32_t a : arcs_of_[order_[i]]) {
        if (arcs_[a].left == 0 || level_[arcs_[a].to] >= 0) continue;
        level_[arcs_[a].to] = level_[order_[i]] + 1;
        order_.push_back(arcs_[a].to);
      }
    }
    return level_[to] >= 0;
  }

  // As deep as the layers are, and these are few.
  int64_t Push(uint32_t at, uint32_t to, int64_t most) {
    if (at == to) return most;
    for (uint32_t& i = next_[at]; i < arcs_of_[at].size(); ++i) {
      const uint32_t a = arcs_of_[at][i];
      if (arcs_[a].left == 0 || level_[arcs_[a].to] != level_[at] + 1) continue;
      const int64_t pushed = Push(arcs_[a].to, to, std::min(most, arcs_[a].left));
      if (pushed == 0) continue;
      arcs_[a].left -= pushed;
      arcs_[a ^ 1].left += pushed;
      return pushed;
    }
    return 0;
  }

  std::vector<Arc> arcs_;
  std::vector<std::vector<uint32_t>> arcs_of_;  // [vertex]
  std::vector<int32_t> level_;
  std::vector<uint32_t> next_, order_;
};

// The fabric's switches, a vertex for each host that has ranks (its bundle), and a source.
class CutSearch {
 public:
  // `backwards`: every link the other way, which makes an allgather of a reduce-scatter.
  CutSearch(const Snapshot& snapshot, const CostProfile& profile, const MemberPlaces& places,
            bool backwards)
      : snapshot_(snapshot),
        profile_(profile),
        backwards_(backwards),
        source_(snapshot.fabric->switch_count()),
        network_(Number(places)) {
    AddSwitchLinks();
    for (const EndpointIndex e : places.endpoints) AddPort(e);
    for (uint32_t h = 0; h < ranks_.size(); ++h) {
      source_arcs_.push_back(network_.AddArc(source_, HostVertex(h), 0));
    }
  }

  uint32_t host_count() const { return static_cast<uint32_t>(ranks_.size()); }
  double ports_in_gbps() const { return in_mbps_ / 1e3; }
  double ports_out_gbps() const { return out_mbps_ / 1e3; }

  // Capacity of the least cut between two hosts, one way.
  double LeastCutGbps(uint32_t from, uint32_t to) {
    Reset({0, 1});
    return static_cast<double>(network_.Flow(HostVertex(from), HostVertex(to))) / 1e3;
  }

  // The cut with the most ranks inside per capacity that leaves it.
  BottleneckCut Bottleneck() {
    Ratio worst = {all_ranks_ - ranks_[0], Leaving(0)};
    for (uint32_t h = 0; h < ranks_.size();) {
      Reset(worst);
      const int64_t wanted = all_ranks_ * worst.mbps;
      if (network_.Flow(source_, HostVertex(h)) >= wanted) {
        ++h;
      } else {
        worst = CutOf();
      }
    }
    return {static_cast<uint32_t>(worst.ranks), static_cast<double>(worst.mbps) / 1e3};
  }

 private:
  struct Ratio {
    int64_t ranks, mbps;
  };
  struct NetworkLink {
    uint32_t from, to, arc;
    int64_t mbps;
  };

  uint32_t HostVertex(uint32_t host) const { return source_ + 1 + host; }

  // Hosts in order of their first rank; the number of vertices.
  uint32_t Number(const MemberPlaces& places) {
    for (size_t i = 0; i < places.endpoints.size(); ++i) {
      const BundleIndex bundle = snapshot_.fabric->bundle(places.endpoints[i]);
      const auto [at, is_new] =
          host_of_.try_emplace(bundle.value(), static_cast<uint32_t>(ranks_.size()));
      if (is_new) ranks_.push_back(0);
      ranks_[at->second] += places.ranks_at[i];
      all_ranks_ += places.ranks_at[i];
    }
    return source_ + 1 + static_cast<uint32_t>(ranks_.size());
  }

  int64_t Mbps(ChannelIndex c) const {
    const double known = snapshot_.fabric->capacity_gbps(c);
    const double gbps = known > 0 ? known : profile_.port_gbps;
    const double free = 1 - std::min<double>(snapshot_.utilisation(c), kMaxUtilisation);
    return std::max<int64_t>(1, static_cast<int64_t>(gbps * free * 1e3 + 0.5));
  }

  void AddLink(uint32_t from, uint32_t to, int64_t mbps) {
    if (backwards_) std::swap(from, to);
    links_.push_back({from, to, network_.AddArc(from, to, 0), mbps});
  }

  void AddSwitchLinks() {
    for (uint32_t s = 0; s < source_; ++s) {
      absl::flat_hash_map<uint32_t, int64_t> beside;
      for (const Channel& channel : snapshot_.fabric->switch_channels(SwitchIndex(s))) {
        if (channel.to.value() != s) beside[channel.to.value()] += Mbps(channel.index);
      }
      std::vector<std::pair<uint32_t, int64_t>> ordered(beside.begin(), beside.end());
      std::sort(ordered.begin(), ordered.end());
      for (const auto& [to, mbps] : ordered) AddLink(s, to, mbps);
    }
  }

  void AddPort(EndpointIndex e) {
    const Fabric& fabric = *snapshot_.fabric;
    const ChannelIndex up = fabric.uplink(e);
    if (up == kNoChannel) return;
    const uint32_t host = host_of_.at(fabric.bundle(e).value());
    const uint32_t at = fabric.attached_switch(e)->value();
    AddLink(HostVertex(host), at, Mbps(up));
    AddLink(at, HostVertex(host), Mbps(Fabric::Reverse(up)));
    out_mbps_ += static_cast<double>(Mbps(up));
    in_mbps_ += static_cast<double>(Mbps(Fabric::Reverse(up)));
  }

  // Of all but host `h`: what enters it.
  int64_t Leaving(uint32_t h) const {
    int64_t mbps = 0;
    for (const NetworkLink& link : links_) mbps += link.to == HostVertex(h) ? link.mbps : 0;
    return mbps;
  }

  // A link carries `ratio.ranks` times its capacity while a rank gives `ratio.mbps`.
  void Reset(Ratio ratio) {
    const int64_t scale = ratio.ranks == 0 ? 1 : ratio.ranks;
    for (const NetworkLink& link : links_) network_.SetCapacity(link.arc, scale * link.mbps);
    for (uint32_t h = 0; h < source_arcs_.size(); ++h) {
      network_.SetCapacity(source_arcs_[h], ratio.ranks == 0 ? 0 : ranks_[h] * ratio.mbps);
    }
  }

  Ratio CutOf() const {
    Ratio ratio = {0, 0};
    for (uint32_t h = 0; h < ranks_.size(); ++h) {
      if (network_.IsInside(HostVertex(h))) ratio.ranks += ranks_[h];
    }
    for (const NetworkLink& link : links_) {
      if (network_.IsInside(link.from) && !network_.IsInside(link.to)) ratio.mbps += link.mbps;
    }
    return ratio;
  }

  const Snapshot& snapshot_;
  const CostProfile& profile_;
  bool backwards_;
  uint32_t source_;                                  // after the switches
  absl::flat_hash_map<uint32_t, uint32_t> host_of_;  // by bundle
  std::vector<int64_t> ranks_;                       // [host]
  int64_t all_ranks_ = 0;
  FlowNetwork network_;
  std::vector<NetworkLink> links_;
  std::vector<uint32_t> source_arcs_;  // [host]
  double in_mbps_ = 0, out_mbps_ = 0;
};

}  // namespace

absl::StatusOr<ForestBound> FindForestBound(const Snapshot& snapshot, const CostProfile& profile,
                                            Members members, uint64_t bytes) {
  ASSIGN_OR_RETURN(const MemberPlaces places, FindMemberPlaces(snapshot, members));
  ForestBound bound;
  CutSearch search(snapshot, profile, places, false);
  if (search.host_count() < 2) return bound;
  double bcast_gbps = std::numeric_limits<double>::infinity(), least_gbps = bcast_gbps;
  for (uint32_t h = 1; h < search.host_count(); ++h) {
    bcast_gbps = std::min(bcast_gbps, search.LeastCutGbps(0, h));
    least_gbps = std::min({least_gbps, bcast_gbps, search.LeastCutGbps(h, 0)});
  }
  if (least_gbps <= 0) {
    return absl::FailedPreconditionError("no cable joins some member to another");
  }
  const uint64_t packets = bytes / std::max(1U, profile.mtu_bytes) +
                           (bytes % std::max(1U, profile.mtu_bytes) != 0 ? 1 : 0);
  const double megabits =
      static_cast<double>(bytes + packets * profile.header_bytes) * 8e-3;  // us * Gb/s
  const auto us = [&](const BottleneckCut& cut) {
    return megabits * cut.ranks / static_cast<double>(members.size()) / cut.leaving_gbps;
  };
  bound.cut = search.Bottleneck();
  bound.allgather_us = us(bound.cut);
  bound.reduce_scatter_us = us(CutSearch(snapshot, profile, places, true).Bottleneck());
  bound.allreduce_us = bound.reduce_scatter_us + bound.allgather_us;
  bound.bcast_us = megabits / bcast_gbps;
  const double ports_gbps = std::min(search.ports_in_gbps(), search.ports_out_gbps());
  bound.allreduce_floor_us =
      std::max(megabits / least_gbps, 2 * megabits * (search.host_count() - 1) / ports_gbps);
  return bound;
}

}  // namespace coppice
