// One loop over events by time. An event is a packet's head before a link that others use, too, or
// at a node where others arrive: whatever a packet has to itself it passes at once, because times
// only grow along its way and packets of one edge keep their order.

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "daemon/tree/contended_metrics.h"
#include "daemon/tree/tree_metrics.h"

namespace coppice {
namespace {

// A packet's head at a place of its way, its tail `lag_us` later.
struct PacketHead {
  double at_us = 0;
  double lag_us = 0;
  uint64_t edge_and_packet = 0;  // child end of its edge, 1 bit: downwards, 31 bits: which packet
  uint32_t hop = 0;              // to be crossed
  uint32_t end = 0;              // of its way: it is there

  static uint64_t Of(uint32_t node, bool down, uint32_t packet) {
    return uint64_t{node} << 32 | uint64_t{down} << 31 | packet;
  }
  uint32_t node() const { return static_cast<uint32_t>(edge_and_packet >> 32); }
  bool down() const { return (edge_and_packet >> 31 & 1) != 0; }
  uint32_t packet() const { return static_cast<uint32_t>(edge_and_packet & 0x7fffffff); }
  // A total order: a packet has one head.
  friend bool operator>(const PacketHead& a, const PacketHead& b) {
    return a.at_us != b.at_us ? a.at_us > b.at_us : a.edge_and_packet > b.edge_and_packet;
  }
};

using Sharing = TreeRoutes::Sharing;

constexpr uint32_t kNeverQueued = UINT32_MAX;  // in TreeRoutes::hops

// The packets of one direction.
struct Train {
  uint32_t count = 1;  // that are followed
  double bytes = 0;    // of each but the last
  double last_bytes = 0;
  double BytesOf(uint32_t packet) const { return packet + 1 < count ? bytes : last_bytes; }
};

Train TrainOf(uint64_t bytes, uint64_t packet_bytes, uint64_t more, uint32_t most) {
  const bool all = more < most;
  const uint64_t last = all ? bytes - more * packet_bytes : packet_bytes;
  return {.count = all ? static_cast<uint32_t>(more) + 1 : most,
          .bytes = static_cast<double>(packet_bytes),
          .last_bytes = static_cast<double>(last)};
}

class PacketWalker {
 public:
  PacketWalker(const CostProfile& profile, const AggregationTree& tree, const TreeRoutes& routes,
               const Payload& payload, const Pipeline& pipeline, uint32_t most)
      : profile_(profile),
        tree_(tree),
        routes_(routes),
        lists_(ChildrenOf(tree.parents)),
        streams_(pipeline.streams),
        trains_{TrainOf(payload.up_bytes, pipeline.packet.up_bytes, pipeline.more_up, most),
                TrainOf(payload.down_bytes, pipeline.packet.down_bytes, pipeline.more_down, most)},
        reduced_share_(payload.up_bytes > 0 ? static_cast<double>(payload.reduced_bytes) /
                                                  static_cast<double>(payload.up_bytes)
                                            : 0),
        nodes_(tree.node_count()) {
    LayOutLinks();
    uint32_t counters = 0;
    for (uint32_t node = 0; node < tree_.node_count(); ++node) {
      if (IsLeaf(node)) continue;
      nodes_[node].first_packet = counters;
      nodes_[node].takes_in_order = TakesInOrder(node);
      counters += up().count;
      missing_.insert(missing_.end(), up().count, static_cast<uint32_t>(lists_.of(node).size()));
    }
  }

  // What is before every link and node, so that a walk can end when that takes too long.
  void Expect(const PacketBound& bound) {
    for (uint32_t node = 0; node < tree_.node_count(); ++node) {
      nodes_[node].rest_us = bound.after_done_us[node];
      for (const bool down : {false, true}) {
        for (uint32_t hop = Begin(node, down); hop < End(node, down); ++hop) {
          Link& link = links_[hops_[hop].link];
          link.ahead[Phase(down)].work_us += TrainUs(link, down);
        }
      }
      if (tree_.parents[node] == AggregationTree::kNoParent) continue;
      const auto parent = static_cast<uint32_t>(tree_.parents[node]);
      const uint32_t last = up().count - 1;
      nodes_[parent].ahead_us += last * TakeUs(node, 0) + TakeUs(node, last);
    }
    for (size_t link = 0; link < links_.size(); ++link) {
      links_[link].ahead[0].rest_us = bound.after_entry_up_us[link];
      links_[link].ahead[1].rest_us = bound.after_entry_down_us[link];
    }
  }

  // False: it is seen to take longer than `cutoff_us`.
  bool Run(double cutoff_us) {
    for (uint32_t node = 0; node < tree_.node_count(); ++node) {
      if (IsLeaf(node)) Offer(node);
    }
    while (!waiting_.empty()) {
      const PacketHead head = waiting_.top();
      waiting_.pop();
      least_us_ = std::max(least_us_, head.at_us);
      if (least_us_ > cutoff_us) return false;
      Handle(head);
    }
    return true;
  }

  double root_done_us() const { return root_done_us_; }
  double last_us() const { return last_us_; }
  double least_us() const { return std::max(least_us_, last_us_); }  // if it did not end

 private:
  struct Ahead {  // packets that have not crossed a link, and what comes after the last of them
    double work_us = 0, rest_us = 0;
  };
  struct Link {
    double us_per_byte = 0, pass_us = 0;
    double free_us = 0;
    std::array<Ahead, 2> ahead = {};                      // [phase]
    std::array<double, 2> wire_us = {}, payload_us = {};  // [down] of a packet, with header or not
  };
  struct Hop {
    uint32_t link = 0;
    bool is_awaited = false;  // others may come to the link meanwhile
  };
  struct Node {
    uint32_t first_packet = 0;         // of an inner node, in missing_
    uint32_t offered = 0;              // packets of a leaf so far
    uint32_t waits_at = kNeverQueued;  // hop at which a leaf's packets first wait
    bool takes_in_order = false;       // packets arrive as they come through its port
    double last_take_us = -std::numeric_limits<double>::infinity();
    double match_free_us = 0, may_copy_us = 0;
    double may_offer_us = 0;                      // a leaf's next packet
    double handed_up_us = 0, handed_down_us = 0;  // its last packet; downwards from the parent
    double ahead_us = 0, rest_us = 0;             // to be taken; after the last packet is reduced
  };

  const Train& up() const { return trains_[0]; }
  const Train& down() const { return trains_[1]; }
  bool IsLeaf(uint32_t node) const { return lists_.begin[node] == lists_.begin[node + 1]; }
  const NodeCost& CostOf(uint32_t node) const {
    return tree_.IsRank(node) ? profile_.nic : profile_.switch_;
  }
  uint32_t Begin(uint32_t node, bool down) const { return routes_.begin[2 * node + down]; }
  uint32_t End(uint32_t node, bool down) const { return routes_.begin[2 * node + down + 1]; }

  void LayOutLinks() {
    for (const TreeRoutes::Link& link : routes_.links) {
      Link laid = {.us_per_byte = link.us_per_byte, .pass_us = link.pass_us};
      for (const size_t way : {0, 1}) {
        laid.payload_us[way] = link.us_per_byte * trains_[way].bytes;
        laid.wire_us[way] = link.us_per_byte * (trains_[way].bytes + profile_.header_bytes);
      }
      links_.push_back(laid);
    }
    hops_.resize(routes_.hops.size());
    for (uint32_t way = 0; way < 2 * tree_.node_count(); ++way) {
      for (uint32_t hop = routes_.begin[way]; hop < routes_.begin[way + 1]; ++hop) {
        hops_[hop] = {routes_.hops[hop].link, IsAwaited(hop, way % 2 != 0)};
      }
    }
  }

  // What one parent sends leaves in order anyway.
  bool IsAwaited(uint32_t hop, bool down) const {
    const TreeRoutes::Link& link = routes_.links[routes_.hops[hop].link];
    if (streams_ && link.up > 0 && link.down > 0) return true;
    const Sharing sharing = routes_.hops[hop].sharing;
    return sharing == Sharing::kOthers || (sharing == Sharing::kSiblings && !down);
  }

  // Packets come in the order in which they cross the last link if no other leads to `node`, and if
  // none of them is slower, so that every tail is as far behind.
  bool TakesInOrder(uint32_t node) const {
    const absl::Span<const uint32_t> children = lists_.of(node);
    if (children.size() == 1) return true;
    for (const uint32_t child : children) {
      const uint32_t begin = Begin(child, false), end = End(child, false);
      if (begin == end) return false;
      const uint32_t last = hops_[end - 1].link;
      if (end != End(children.front(), false) &&
          last != hops_[End(children.front(), false) - 1].link) {
        return false;
      }
      for (uint32_t hop = begin; hop < end; ++hop) {
        if (links_[hops_[hop].link].us_per_byte > links_[last].us_per_byte) return false;
      }
    }
    return true;
  }

  double WireUs(const Link& link, bool down, uint32_t packet) const {
    const Train& train = trains_[down];
    if (packet + 1 < train.count) return link.wire_us[down];
    return link.us_per_byte * (train.last_bytes + profile_.header_bytes);
  }
  double PayloadUs(const Link& link, bool down, uint32_t packet) const {
    const Train& train = trains_[down];
    return packet + 1 < train.count ? link.payload_us[down] : link.us_per_byte * train.last_bytes;
  }

  double TrainUs(const Link& link, bool down) const {
    const uint32_t last = trains_[down].count - 1;
    return last * link.wire_us[down] + WireUs(link, down, last);
  }

  // Where results stream, packets of both directions follow each other.
  size_t Phase(bool down) const { return down && !streams_ ? 1 : 0; }

  double MatchUs(const NodeCost& cost, uint32_t packet) const {
    return cost.match_us + cost.reduce_us_per_byte * reduced_share_ * up().BytesOf(packet);
  }
  // Between the packet before and this one of `child`, at its parent.
  double TakeUs(uint32_t child, uint32_t packet) const {
    const NodeCost& cost = CostOf(static_cast<uint32_t>(tree_.parents[child]));
    const uint32_t end = End(child, false);
    const bool by_link = Begin(child, false) < end;
    return std::max(MatchUs(cost, packet),
                    by_link ? WireUs(links_[hops_[end - 1].link], false, packet) : 0);
  }

  // phi, or what there is instead within a host.
  double LeaveUs(const NodeCost& sender, uint32_t node, bool down, uint32_t packet) const {
    if (Begin(node, down) == End(node, down)) return profile_.same_host_us;
    return sender.forward_us + sender.forward_us_per_byte * trains_[down].BytesOf(packet);
  }

  // --- Under way.

  // What `sender` hands on over the edge of `node`, where it first waits, or kNeverQueued. A short
  // packet does not overtake the one before it, where phi grows with the size.
  uint32_t Leave(const NodeCost& sender, uint32_t node, bool down, uint32_t packet, double us,
                 double& handed_us) {
    handed_us = std::max(handed_us, us + LeaveUs(sender, node, down, packet));
    PacketHead head = {.at_us = handed_us,
                       .edge_and_packet = PacketHead::Of(node, down, packet),
                       .hop = Begin(node, down),
                       .end = End(node, down)};
    return Follow(head);
  }

  // Up to the next link that others may use meanwhile, or to where others arrive.
  uint32_t Follow(PacketHead& head) {
    for (; head.hop < head.end; Cross(head)) {
      if (!hops_[head.hop].is_awaited) continue;
      waiting_.push(head);
      return head.hop;
    }
    if (head.down()) {
      Receive(head.node(), head.packet(), head.at_us);
    } else if (nodes_[tree_.parents[head.node()]].takes_in_order) {
      Take(head);
    } else {
      waiting_.push(head);
      return head.hop;
    }
    return kNeverQueued;
  }

  void Cross(PacketHead& head) {
    Link& link = links_[hops_[head.hop].link];
    const bool down = head.down();
    const uint32_t packet = head.packet();
    const double start_us = std::max(head.at_us, link.free_us);
    const double wire_us = WireUs(link, down, packet);
    link.free_us = start_us + wire_us;
    Ahead& ahead = link.ahead[Phase(down)];
    ahead.work_us -= wire_us;
    if (ahead.work_us > 0) {  // the last one enters before it has crossed
      const double longest_us = std::max(link.wire_us[0], link.wire_us[1]);
      least_us_ = std::max(least_us_, link.free_us + ahead.work_us - longest_us + ahead.rest_us);
    }
    if (!down) {
      Node& node = nodes_[head.node()];
      if (head.hop == Begin(head.node(), false)) node.may_offer_us = link.free_us;
    }
    head.lag_us = std::max(PayloadUs(link, down, packet), head.at_us + head.lag_us - start_us);
    head.at_us = start_us + link.pass_us;
    if (++head.hop == head.end && !profile_.forward_includes_serialisation) {
      head.at_us += head.lag_us;
    }
  }

  void Handle(PacketHead head) {
    const uint32_t node = head.node();
    const bool is_offer = !head.down() && IsLeaf(node) && head.hop == nodes_[node].waits_at;
    if (head.hop < head.end) {
      Cross(head);
      Follow(head);
    } else if (head.down()) {
      Receive(node, head.packet(), head.at_us);
    } else {
      Take(head);
    }
    if (is_offer) Offer(node);
  }

  // --- Up.

  // A leaf's next packet; all of them while nothing has to be waited for. Everything is there from
  // the beginning: only its port is waited for.
  void Offer(uint32_t leaf) {
    Node& node = nodes_[leaf];
    while (node.offered < up().count) {
      node.handed_up_us = node.may_offer_us;
      node.waits_at = Leave(CostOf(leaf), leaf, false, node.offered++, 0, node.handed_up_us);
      if (node.waits_at != kNeverQueued) return;
    }
  }

  // The parent's turn to match and reduce.
  void Take(const PacketHead& head) {
    const auto parent = static_cast<uint32_t>(tree_.parents[head.node()]);
    const uint32_t packet = head.packet();
    Node& node = nodes_[parent];
    const double match_us = MatchUs(CostOf(parent), packet);
    const double take_us = TakeUs(head.node(), packet);
    node.last_take_us = std::max({head.at_us, node.match_free_us, node.last_take_us + take_us});
    if (head.end == Begin(head.node(), false)) nodes_[head.node()].may_offer_us = node.last_take_us;
    node.match_free_us = node.last_take_us + match_us;
    node.ahead_us -= take_us;
    if (node.ahead_us > 0) {
      least_us_ = std::max(least_us_, node.last_take_us + node.ahead_us + node.rest_us);
    }
    if (--missing_[node.first_packet + packet] == 0) HandOn(parent, packet, node.match_free_us);
  }

  void HandOn(uint32_t n, uint32_t packet, double done_us) {
    if (tree_.parents[n] != AggregationTree::kNoParent) {
      Leave(CostOf(n), n, false, packet, done_us, nodes_[n].handed_up_us);
      return;
    }
    root_done_us_ = std::max(root_done_us_, done_us);
    if (streams_) {
      Receive(n, packet, done_us);
    } else if (packet + 1 == up().count) {
      AddResult(n, 0, done_us);
    }
  }

  // --- Down.

  // The root turns to a packet of a result that is there as a whole.
  void AddResult(uint32_t root, uint32_t packet, double at_us) {
    waiting_.push({.at_us = at_us, .edge_and_packet = PacketHead::Of(root, true, packet)});
  }

  // `n` has a packet of the result and copies it to its children.
  void Receive(uint32_t n, uint32_t packet, double now_us) {
    last_us_ = std::max(last_us_, now_us);
    if (IsLeaf(n)) return;
    const NodeCost& cost = CostOf(n);
    double turn_us = std::max(now_us, nodes_[n].may_copy_us);
    for (const uint32_t child : lists_.of(n)) {
      Leave(cost, child, true, packet, turn_us + cost.send_us, nodes_[child].handed_down_us);
      const uint32_t hop = Begin(child, true);
      const bool by_link = hop < End(child, true);
      const double port_us = by_link ? WireUs(links_[hops_[hop].link], true, packet) : 0;
      turn_us += std::max(cost.send_us, port_us);
    }
    nodes_[n].may_copy_us = turn_us;
    const bool is_root = tree_.parents[n] == AggregationTree::kNoParent;
    if (is_root && !streams_ && packet + 1 < down().count) AddResult(n, packet + 1, turn_us);
  }

  const CostProfile& profile_;
  const AggregationTree& tree_;
  const TreeRoutes& routes_;
  const ChildLists lists_;
  const bool streams_;  // a packet of the result leaves as soon as it is reduced
  const std::array<Train, 2> trains_;
  const double reduced_share_;
  std::priority_queue<PacketHead, std::vector<PacketHead>, std::greater<>> waiting_;  // by time
  std::vector<Link> links_;
  std::vector<Hop> hops_;          // as TreeRoutes::hops
  std::vector<Node> nodes_;        // [node]
  std::vector<uint32_t> missing_;  // [inner node][packet] of children, not yet taken
  double root_done_us_ = 0;
  double last_us_ = 0;   // receipt
  double least_us_ = 0;  // of all, as far as it can be seen
};

// The slowest stages, links included.
Stages LinkStages(const CostProfile& profile, const AggregationTree& tree,
                  absl::Span<const EdgeCost> edges, const TreeRoutes& routes,
                  const Payload& packet) {
  Stages slowest = SlowestStages(profile, tree, edges, packet);
  const double header = profile.header_bytes;
  const double up_bytes = header + static_cast<double>(packet.up_bytes);
  const double down_bytes = header + static_cast<double>(packet.down_bytes);
  for (const TreeRoutes::Link& link : routes.links) {
    const double up = link.us_per_byte * up_bytes * link.up;
    const double down = link.us_per_byte * down_bytes * link.down;
    slowest.up_us = std::max(slowest.up_us, up);
    slowest.down_us = std::max(slowest.down_us, down);
    slowest.port_us = std::max(slowest.port_us, up + down);
  }
  return slowest;
}

// Of each edge; a first and a last one at least.
uint32_t MostFollowed(size_t nodes) {
  const uint64_t most = kMaxPacketsFollowed / std::max<size_t>(nodes, 1);
  return static_cast<uint32_t>(std::clamp<uint64_t>(most, 2, kMaxPacketsFollowedOfOne));
}

// What is followed of `payload`.
Payload FirstPackets(const Payload& payload, const Pipeline& pipeline, uint64_t most) {
  Payload first = payload;
  first.up_bytes = std::min(payload.up_bytes, most * pipeline.packet.up_bytes);
  first.down_bytes = std::min(payload.down_bytes, most * pipeline.packet.down_bytes);
  if (payload.reduced_bytes > 0) {  // of all packets the same share
    const double share =
        static_cast<double>(first.up_bytes) / static_cast<double>(payload.up_bytes);
    first.reduced_bytes = static_cast<uint64_t>(share * static_cast<double>(payload.reduced_bytes));
  }
  return first;
}

// Packets that are not followed.
Pipeline AfterFirst(Pipeline pipeline, uint64_t most) {
  pipeline.more_up -= std::min(pipeline.more_up, most - 1);
  pipeline.more_down -= std::min(pipeline.more_down, most - 1);
  return pipeline;
}

// Makes stages as long as those after the first packet took in the mean, where that is longer: what
// overtakes and comes down between what goes up leaves stages idle that have work before them, the
// more of it the longer the message. `first` has followed one packet, `followed` all but `rest`.
void AddPace(const Pipeline& pipeline, const Pipeline& rest, const PacketWalker& first,
             const PacketWalker& followed, Stages& stages) {
  const auto pace = [](double more_us, uint64_t more) {
    return more > 0 ? more_us / static_cast<double>(more) : 0;
  };
  const uint64_t more_up = pipeline.more_up - rest.more_up;
  const uint64_t more_down = pipeline.more_down - rest.more_down;
  const double all_us = followed.last_us() - first.last_us();
  const double up_us = followed.root_done_us() - first.root_done_us();
  if (pipeline.streams) {
    stages.port_us = std::max(stages.port_us, pace(all_us, more_up));
  } else {
    stages.up_us = std::max(stages.up_us, pace(up_us, more_up));
    stages.down_us = std::max(stages.down_us, pace(all_us - up_us, more_down));
  }
}

}  // namespace

uint64_t PacketsToFollow(const CostProfile& profile, const CollectiveMix& mix, size_t nodes) {
  const uint64_t most = MostFollowed(nodes);
  uint64_t packets = 0;
  for (const SizeShare& share : mix.sizes) {
    const Pipeline pipeline = PipelineOf(profile, PayloadOf(mix.operation, share.bytes));
    packets += std::min(pipeline.more_up + 1, most) + std::min(pipeline.more_down + 1, most);
  }
  return nodes * packets;
}

Prediction EvaluatePackets(const CostProfile& profile, const AggregationTree& tree,
                           absl::Span<const EdgeCost> edges, const TreeRoutes& routes,
                           const Payload& payload, double cutoff_us) {
  if (tree.parents.size() < 2) return {.total_us = profile.init_us};
  const uint32_t most = MostFollowed(tree.node_count());
  const Pipeline pipeline = PipelineOf(profile, payload);
  const Pipeline rest = AfterFirst(pipeline, most);
  Stages stages;
  if (!rest.is_one_packet()) stages = LinkStages(profile, tree, edges, routes, rest.packet);
  PacketWalker walker(profile, tree, routes, payload, pipeline, most);
  if (cutoff_us < kNoCutoff) {
    walker.Expect(BoundPackets(profile, tree, routes, FirstPackets(payload, pipeline, most)));
  }
  const bool is_whole = walker.Run(cutoff_us - profile.init_us - rest.TotalUs(stages));
  const double last_us = is_whole ? walker.last_us() : walker.least_us();
  Prediction prediction = {.aggregate_us = walker.root_done_us(),
                           .distribute_us = last_us - walker.root_done_us(),
                           .total_us = profile.init_us + last_us};
  if (rest.is_one_packet()) return prediction;
  if (is_whole) {
    PacketWalker first(profile, tree, routes, payload, pipeline, 1);
    first.Run(kNoCutoff);
    AddPace(pipeline, rest, first, walker, stages);
  }
  rest.AddPackets(stages, prediction);
  return prediction;
}

}  // namespace coppice
