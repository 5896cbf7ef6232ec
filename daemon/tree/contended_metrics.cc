#include "daemon/tree/contended_metrics.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "daemon/base/status_macros.h"
#include "daemon/tree/closed_form.h"
#include "daemon/tree/tree_metrics.h"

namespace coppice {

// Two walks as in tree_metrics.cc, but for two packets at a time, then a look at every link. n
// packets of B bytes, the last of L; s(B) = max(theta + B*gamma, B / B_port) and so on:
//
//   first(v)  = one by one from the children's first arrivals, s(B) apart, + match(B)
//   last(v)   = the later of:  one by one from the children's last arrivals, s(L) apart, + match(L)
//                              first arrival + all packets but one, s apart, + match(L)
//   arrival of last(c) = the later of last(c) + way, first(c) + way + (n - 1) on the slowest wire
//
// and downwards likewise, copies in place of packets that are taken. A link is busy from when the
// first packet can be there, at the earliest, until the last of some edge has crossed it, which
// then has the rest of its way before it.

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// The packets of one direction.
struct BoundTrain {
  double more = 0;   // packets before the last
  double bytes = 0;  // of each of them, and of the first
  double last_bytes = 0;
};

BoundTrain TrainOf(uint64_t bytes, uint64_t packet_bytes, uint64_t more) {
  return {.more = static_cast<double>(more),
          .bytes = static_cast<double>(packet_bytes),
          .last_bytes = static_cast<double>(bytes - more * packet_bytes)};
}

// When the first and the last packet are somewhere, at the earliest.
struct Span {
  double first_us = 0, last_us = 0;
};

// Of one edge and direction.
struct Way {
  double pass_us = 0;              // l + w(u) of all links, or same_host_us
  double slowest_us_per_byte = 0;  // of all links
  double port_us_per_byte = 0;     // at the parent
  Span leaves;                     // the sender, phi included
};

class Bound {
 public:
  Bound(const CostProfile& profile, const AggregationTree& tree, const TreeRoutes& routes,
        const Payload& payload)
      : profile_(profile), tree_(tree), routes_(routes), lists_(ChildrenOf(tree.parents)) {
    const Pipeline pipeline = PipelineOf(profile, payload);
    streams_ = pipeline.streams;
    up_ = TrainOf(payload.up_bytes, pipeline.packet.up_bytes, pipeline.more_up);
    down_ = TrainOf(payload.down_bytes, pipeline.packet.down_bytes, pipeline.more_down);
    if (payload.up_bytes > 0) {
      reduced_share_ =
          static_cast<double>(payload.reduced_bytes) / static_cast<double>(payload.up_bytes);
    }
  }

  PacketBound Find() {
    const uint32_t nodes = tree_.node_count();
    order_.push_back(tree_.root());
    for (uint32_t p = 0; p < order_.size(); ++p) {
      const absl::Span<const uint32_t> children = lists_.of(order_[p]);
      order_.insert(order_.end(), children.begin(), children.end());
    }
    ways_up_.resize(nodes);
    ways_down_.resize(nodes);
    for (const uint32_t node : order_) {
      if (node == order_.front()) continue;
      ways_up_[node] = FindWay(node, false);
      ways_down_[node] = FindWay(node, true);
    }
    Aggregate();
    Distribute();
    FindRest();
    PacketBound bound;
    LookAtLinks(bound);
    bound.least_us = profile_.init_us + std::max(end_us_, bound.least_us);
    bound.after_done_us = std::move(after_done_);
    return bound;
  }

 private:
  const NodeCost& CostOf(uint32_t node) const {
    return tree_.IsRank(node) ? profile_.nic : profile_.switch_;
  }
  uint32_t Begin(uint32_t node, bool down) const {
    return routes_.begin[2 * node + (down ? 1 : 0)];
  }
  uint32_t End(uint32_t node, bool down) const { return routes_.begin[2 * node + (down ? 2 : 1)]; }
  const TreeRoutes::Link& LinkAt(uint32_t hop) const {
    return routes_.links[routes_.hops[hop].link];
  }
  bool WithinHost(uint32_t node, bool down) const { return Begin(node, down) == End(node, down); }

  double LeaveUs(const NodeCost& sender, uint32_t node, bool down, double bytes) const {
    if (WithinHost(node, down)) return 0;
    return sender.forward_us + sender.forward_us_per_byte * bytes;
  }
  double WireUs(double us_per_byte, double bytes) const {
    return us_per_byte * (bytes + profile_.header_bytes);
  }
  double LagUs(double us_per_byte, double bytes) const {
    return profile_.forward_includes_serialisation ? 0 : us_per_byte * bytes;
  }
  double MatchUs(const NodeCost& cost, double bytes) const {
    return cost.match_us + cost.reduce_us_per_byte * reduced_share_ * bytes;
  }

  Way FindWay(uint32_t node, bool down) const {
    Way way;
    if (WithinHost(node, down)) way.pass_us = profile_.same_host_us;
    for (uint32_t hop = Begin(node, down); hop < End(node, down); ++hop) {
      const TreeRoutes::Link& link = LinkAt(hop);
      way.pass_us += link.pass_us;
      way.slowest_us_per_byte = std::max(way.slowest_us_per_byte, link.us_per_byte);
      if (hop == Begin(node, down) || !down) way.port_us_per_byte = link.us_per_byte;
    }
    return way;
  }

  // When packets that leave so are there.
  Span Arrival(const Way& way, const BoundTrain& train) const {
    const double train_us = train.more * WireUs(way.slowest_us_per_byte, train.bytes);
    const double last_us = std::max(way.leaves.last_us, way.leaves.first_us + train_us);
    return {way.leaves.first_us + way.pass_us + LagUs(way.slowest_us_per_byte, train.bytes),
            last_us + way.pass_us + LagUs(way.slowest_us_per_byte, train.last_bytes)};
  }

  // --- Up: when a node has reduced.

  struct Packet {
    double arrival_us, spacing_us;
    bool operator<(const Packet& other) const { return arrival_us < other.arrival_us; }
  };

  static double LastStart(std::vector<Packet>& packets) {
    if (!absl::c_is_sorted(packets)) absl::c_sort(packets);
    double start_us = -kNever;
    for (const Packet& packet : packets) {
      start_us = std::max(packet.arrival_us, start_us + packet.spacing_us);
    }
    return start_us;
  }

  void Aggregate() {
    done_.resize(tree_.node_count());
    for (size_t p = order_.size(); p-- > 0;) {
      const uint32_t node = order_[p];
      if (!lists_.of(node).empty()) done_[node] = Reduced(node);
      const NodeCost& cost = CostOf(node);
      ways_up_[node].leaves = {done_[node].first_us + LeaveUs(cost, node, false, up_.bytes),
                               done_[node].last_us + LeaveUs(cost, node, false, up_.last_bytes)};
    }
  }

  Span Reduced(uint32_t node) {
    const double match_us = MatchUs(CostOf(node), up_.bytes);
    const double last_match_us = MatchUs(CostOf(node), up_.last_bytes);
    firsts_.clear();
    lasts_.clear();
    double work_us = 0, longest_us = 0, begin_us = kNever;
    for (const uint32_t child : lists_.of(node)) {
      const Way& way = ways_up_[child];
      const Span at = Arrival(way, up_);
      const double port_us_per_byte = way.port_us_per_byte;
      const double each_us =
          std::max(match_us, WithinHost(child, false) ? 0 : WireUs(port_us_per_byte, up_.bytes));
      const double last_us = std::max(
          last_match_us, WithinHost(child, false) ? 0 : WireUs(port_us_per_byte, up_.last_bytes));
      firsts_.push_back({at.first_us, each_us});
      lasts_.push_back({at.last_us, last_us});
      work_us += up_.more * each_us + last_us;
      longest_us = std::max(longest_us, each_us);
      begin_us = std::min(begin_us, at.first_us);
    }
    const double last_start_us = std::max(LastStart(lasts_), begin_us + work_us - longest_us);
    return {LastStart(firsts_) + match_us, last_start_us + last_match_us};
  }

  // --- Down: when a node has received.

  void Distribute() {
    received_.resize(tree_.node_count());
    const Span root = done_[order_.front()];
    received_[order_.front()] = {streams_ ? root.first_us : root.last_us, root.last_us};
    for (const uint32_t node : order_) {
      const Span at = received_[node];
      end_us_ = std::max(end_us_, at.last_us);
      const absl::Span<const uint32_t> children = lists_.of(node);
      const NodeCost& cost = CostOf(node);
      double work_us = 0;
      for (const uint32_t child : children) work_us += down_.more * CopyUs(child, down_.bytes);
      double first_us = at.first_us, last_us = std::max(at.last_us, at.first_us + work_us);
      for (const uint32_t child : children) {
        Way& way = ways_down_[child];
        way.leaves = {first_us + cost.send_us + LeaveUs(cost, child, true, down_.bytes),
                      last_us + cost.send_us + LeaveUs(cost, child, true, down_.last_bytes)};
        received_[child] = Arrival(way, down_);
        first_us += CopyUs(child, down_.bytes);
        last_us += CopyUs(child, down_.last_bytes);
      }
    }
  }

  // Before the parent of `child` copies for the next one.
  double CopyUs(uint32_t child, double bytes) const {
    const NodeCost& cost = CostOf(static_cast<uint32_t>(tree_.parents[child]));
    const double port_us =
        WithinHost(child, true) ? 0 : WireUs(ways_down_[child].port_us_per_byte, bytes);
    return std::max(cost.send_us, port_us);
  }

  // --- What is still to come after a node's last packet.

  void FindRest() {
    after_received_.resize(tree_.node_count(), 0);
    for (size_t p = order_.size(); p-- > 0;) {
      const uint32_t node = order_[p];
      const NodeCost& cost = CostOf(node);
      double turn_us = 0;
      for (const uint32_t child : lists_.of(node)) {
        const Way& way = ways_down_[child];
        const double there_us = turn_us + cost.send_us +
                                LeaveUs(cost, child, true, down_.last_bytes) + way.pass_us +
                                LagUs(way.slowest_us_per_byte, down_.last_bytes);
        after_received_[node] = std::max(after_received_[node], there_us + after_received_[child]);
        turn_us += CopyUs(child, down_.last_bytes);
      }
    }
    after_done_.resize(tree_.node_count());
    for (const uint32_t node : order_) {
      if (node == order_.front()) {
        after_done_[node] = streams_ ? after_received_[node] : end_us_ - done_[node].last_us;
        continue;
      }
      const auto parent = static_cast<uint32_t>(tree_.parents[node]);
      const Way& way = ways_up_[node];
      after_done_[node] = LeaveUs(CostOf(node), node, false, up_.last_bytes) + way.pass_us +
                          LagUs(way.slowest_us_per_byte, up_.last_bytes) +
                          MatchUs(CostOf(parent), up_.last_bytes) + after_done_[parent];
    }
  }

  // --- Links.

  struct Use {
    double entry_us = kNever, rest_us = kNever;  // least over the ways that cross it
    double work_us = 0, longest_us = 0;
    void Add(const Use& other) {
      entry_us = std::min(entry_us, other.entry_us);
      rest_us = std::min(rest_us, other.rest_us);
      work_us += other.work_us;
      longest_us = std::max(longest_us, other.longest_us);
    }
    double EndUs() const { return work_us > 0 ? entry_us + work_us - longest_us + rest_us : 0; }
  };

  void LookAtLinks(PacketBound& bound) const {
    std::vector<Use> up(routes_.links.size()), down(routes_.links.size());
    for (const uint32_t node : order_) {
      if (node == order_.front()) continue;
      const auto parent = static_cast<uint32_t>(tree_.parents[node]);
      AddUses(node, false, MatchUs(CostOf(parent), up_.last_bytes) + after_done_[parent], up);
      AddUses(node, true, after_received_[node], down);
    }
    for (size_t link = 0; link < up.size(); ++link) {
      if (streams_) up[link].Add(down[link]);
      bound.least_us = std::max({bound.least_us, up[link].EndUs(), down[link].EndUs()});
      bound.after_entry_up_us.push_back(up[link].rest_us);
      bound.after_entry_down_us.push_back(streams_ ? up[link].rest_us : down[link].rest_us);
    }
  }

  // `rest_us` after arrival.
  void AddUses(uint32_t node, bool down, double rest_us, std::vector<Use>& uses) const {
    const Way& way = (down ? ways_down_ : ways_up_)[node];
    const BoundTrain& train = down ? down_ : up_;
    double entry_us = way.leaves.first_us + way.pass_us, slowest_us_per_byte = 0;
    for (uint32_t hop = End(node, down); hop-- > Begin(node, down);) {
      const TreeRoutes::Link& link = LinkAt(hop);
      slowest_us_per_byte = std::max(slowest_us_per_byte, link.us_per_byte);
      entry_us -= link.pass_us;
      rest_us += link.pass_us;
      const double longest_us = WireUs(link.us_per_byte, train.bytes);
      uses[routes_.hops[hop].link].Add(
          {.entry_us = entry_us,
           .rest_us = rest_us + LagUs(slowest_us_per_byte, train.last_bytes),
           .work_us = train.more * longest_us + WireUs(link.us_per_byte, train.last_bytes),
           .longest_us = longest_us});
    }
  }

  const CostProfile& profile_;
  const AggregationTree& tree_;
  const TreeRoutes& routes_;
  const ChildLists lists_;
  bool streams_ = false;
  BoundTrain up_, down_;
  double reduced_share_ = 0;
  std::vector<uint32_t> order_;                      // the root first, parents before children
  std::vector<Way> ways_up_, ways_down_;             // [child]
  std::vector<Span> done_, received_;                // [node]
  std::vector<double> after_received_, after_done_;  // [node] of its last packet, to the end
  std::vector<Packet> firsts_, lasts_;               // of the node at hand
  double end_us_ = 0;                                // of both walks
};

}  // namespace

PacketBound BoundPackets(const CostProfile& profile, const AggregationTree& tree,
                         const TreeRoutes& routes, const Payload& payload) {
  return Bound(profile, tree, routes, payload).Find();
}

namespace {

constexpr double kBoundRounding = 1e-6;  // of LeastContendedUs

bool IsLong(const CostProfile& profile, const Payload& payload) {
  return !PipelineOf(profile, payload).is_one_packet();
}

}  // namespace

Prediction EvaluateContendedMix(const CostProfile& profile, const AggregationTree& tree,
                                absl::Span<const EdgeCost> edges, const TreeRoutes& routes,
                                const CollectiveMix& mix, double cutoff_us) {
  if (tree.parents.empty() || mix.sizes.empty()) return {};
  const double one_cutoff_us = mix.sizes.size() == 1 ? cutoff_us : kNoCutoff;
  return MeanOver(mix, [&](const Payload& payload) {
    return EvaluatePackets(profile, tree, edges, routes, payload, one_cutoff_us);
  });
}

double LeastContendedUs(const CostProfile& profile, const AggregationTree& tree,
                        absl::Span<const EdgeCost> edges, const TreeRoutes& routes,
                        const CollectiveMix& mix) {
  if (tree.parents.empty() || mix.sizes.empty()) return 0;
  const Prediction least = MeanOver(mix, [&](const Payload& payload) {
    if (!IsLong(profile, payload)) return Evaluate(profile, tree, edges, payload);
    return Prediction{.total_us = BoundPackets(profile, tree, routes, payload).least_us};
  });
  return least.total_us;
}

bool AnyIsLong(const CostProfile& profile, const CollectiveMix& mix) {
  return absl::c_any_of(mix.sizes, [&](const SizeShare& share) {
    return share.weight > 0 && IsLong(profile, PayloadOf(mix.operation, share.bytes));
  });
}

bool QueuesMayMatter(const CostProfile& profile, const CollectiveMix& mix, uint32_t nodes,
                     double slowest_gbps) {
  constexpr double kNoticed = 0.1;
  const Prediction most = MeanOver(mix, [&](const Payload& payload) {
    const Pipeline pipeline = PipelineOf(profile, payload);
    const double packets =
        2 + static_cast<double>(pipeline.more_up) + static_cast<double>(pipeline.more_down);
    const double bytes_both_ways = static_cast<double>(payload.up_bytes) +
                                   static_cast<double>(payload.down_bytes) +
                                   packets * profile.header_bytes;
    return Prediction{.total_us = bytes_both_ways * SerialisationUs(1, slowest_gbps) * nodes};
  });
  return most.total_us > kNoticed * BothWays(profile, TreeType::kTypeI, mix).once_us;
}

bool FollowsPackets(const CostProfile& profile, const CollectiveMix& mix, uint32_t ranks) {
  return ranks <= kMaxRanksContended && AnyIsLong(profile, mix) &&
         PacketsToFollow(profile, mix, ranks) <= kMaxPacketsJudged;
}

absl::Status AddContention(const Snapshot& snapshot, const CostProfile& profile,
                           const AggregationTree& tree, absl::Span<const EdgeCost> edges,
                           const CollectiveMix& mix, Prediction& predicted, double cutoff_us) {
  if (tree.rank_count > kMaxRanksContended || mix.sizes.empty()) return absl::OkStatus();
  double slowest_gbps = 0;
  for (const EdgeCost& edge : edges) {
    for (const double gbps : {edge.min_gbps_up, edge.min_gbps_down}) {
      if (gbps > 0 && (slowest_gbps == 0 || gbps < slowest_gbps)) slowest_gbps = gbps;
    }
  }
  const bool any_is_long = AnyIsLong(profile, mix);
  if (any_is_long && !FollowsPackets(profile, mix, tree.rank_count)) {
    return absl::OkStatus();
  }
  if (!any_is_long && !QueuesMayMatter(profile, mix, tree.node_count(), slowest_gbps)) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const TreeRoutes routes, FindRoutes(snapshot, profile, tree));
  if (!any_is_long && !routes.shares) return absl::OkStatus();
  if (any_is_long && cutoff_us < kNoCutoff) {
    const double least_us =
        LeastContendedUs(profile, tree, edges, routes, mix) * (1 - kBoundRounding);
    if (least_us >= cutoff_us) {
      predicted.total_us = least_us;
      return absl::OkStatus();
    }
  }
  const Prediction contended = EvaluateContendedMix(profile, tree, edges, routes, mix, cutoff_us);
  if (any_is_long || contended.total_us > predicted.total_us) predicted = contended;
  return absl::OkStatus();
}

}  // namespace coppice
