// One loop over events by time. An event is a packet's head before a link that others use, too, or
// at a node where others arrive: whatever a packet has to itself it passes at once, because times
// only grow along its way and packets of one edge keep their order.
#include "daemon/tree/packet_metrics.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "daemon/tree/pipelining.h"

namespace coppice {
namespace {

using Sharing = TreeRoutes::Sharing;

constexpr uint32_t kNowhere = UINT32_MAX;  // in TreeRoutes::hops

// A packet's head at a place of its way, its tail `lag_us` later.
struct Head {
  double at_us = 0;
  double lag_us = 0;
  uint32_t node = 0;  // child end of its edge
  uint32_t packet = 0;
  uint32_t hop = 0;  // to be crossed, in TreeRoutes::hops; the end of its way: it is there
  bool down = false;
  bool operator>(const Head& other) const {
    if (at_us != other.at_us) return at_us > other.at_us;
    if (node != other.node) return node > other.node;
    return down != other.down ? down : packet > other.packet;
  }
};

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

class Walker {
 public:
  Walker(const CostProfile& profile, const AggregationTree& tree, const TreeRoutes& routes,
         const Payload& payload, const Pipeline& pipeline, uint32_t most)
      : profile_(profile),
        tree_(tree),
        routes_(routes),
        lists_(ChildrenOf(tree.parents)),
        streams_(pipeline.streams),
        up_(TrainOf(payload.up_bytes, pipeline.packet.up_bytes, pipeline.more_up, most)),
        down_(TrainOf(payload.down_bytes, pipeline.packet.down_bytes, pipeline.more_down, most)),
        reduced_share_(payload.up_bytes > 0 ? static_cast<double>(payload.reduced_bytes) /
                                                  static_cast<double>(payload.up_bytes)
                                            : 0),
        free_us_(routes.links.size(), 0),
        nodes_(tree.node_count()) {
    uint32_t counters = 0;
    for (uint32_t node = 0; node < tree_.node_count(); ++node) {
      if (IsLeaf(node)) continue;
      nodes_[node].first_packet = counters;
      nodes_[node].takes_in_order = TakesInOrder(node);
      counters += up_.count;
      missing_.insert(missing_.end(), up_.count, static_cast<uint32_t>(lists_.of(node).size()));
    }
  }

  // False: it takes longer than until `cutoff_us`.
  bool Run(double cutoff_us) {
    for (uint32_t node = 0; node < tree_.node_count(); ++node) {
      if (IsLeaf(node)) Offer(node);
    }
    while (!waiting_.empty()) {
      const Head head = waiting_.top();
      if (head.at_us > cutoff_us) {
        last_us_ = std::max(last_us_, head.at_us);
        return false;
      }
      waiting_.pop();
      Handle(head);
    }
    return true;
  }

  double root_done_us() const { return root_done_us_; }
  double last_us() const { return last_us_; }

 private:
  struct Node {
    uint32_t first_packet = 0;    // of an inner node, in missing_
    uint32_t offered = 0;         // packets of a leaf so far
    bool takes_in_order = false;  // packets arrive as they come through its port
    double last_take_us = -std::numeric_limits<double>::infinity();
    uint32_t waits_at = kNowhere;  // hop at which a leaf's packets first wait
    double match_free_us = 0, may_copy_us = 0;
    double may_offer_us = 0;                      // a leaf's next packet
    double handed_up_us = 0, handed_down_us = 0;  // its last packet; downwards from the parent
  };

  bool IsLeaf(uint32_t node) const { return lists_.of(node).empty(); }
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
  double WireUs(const TreeRoutes::Link& link, double bytes) const {
    return link.us_per_byte * (bytes + profile_.header_bytes);
  }
  double BytesOf(const Head& head) const { return (head.down ? down_ : up_).BytesOf(head.packet); }

  // Packets come in the order in which they cross the last link if no other leads to `node`, and if
  // none of them is slower, so that every tail is as far behind.
  bool TakesInOrder(uint32_t node) const {
    const absl::Span<const uint32_t> children = lists_.of(node);
    if (children.size() == 1) return true;
    for (const uint32_t child : children) {
      const uint32_t begin = Begin(child, false), end = End(child, false);
      if (begin == end) return false;
      const uint32_t last = routes_.hops[end - 1].link;
      if (last != routes_.hops[End(children.front(), false) - 1].link) return false;
      for (uint32_t hop = begin; hop < end; ++hop) {
        if (LinkAt(hop).us_per_byte > routes_.links[last].us_per_byte) return false;
      }
    }
    return true;
  }

  // Others may come to this link meanwhile. What one parent sends leaves in order anyway.
  bool IsAwaited(uint32_t hop, bool down) const {
    const TreeRoutes::Link& link = LinkAt(hop);
    if (streams_ && link.up > 0 && link.down > 0) return true;
    const Sharing sharing = routes_.hops[hop].sharing;
    return sharing == Sharing::kOthers || (sharing == Sharing::kSiblings && !down);
  }

  // phi, or what there is instead within a host.
  double LeaveUs(const NodeCost& sender, uint32_t node, bool down, double bytes) const {
    if (Begin(node, down) == End(node, down)) return profile_.same_host_us;
    return sender.forward_us + sender.forward_us_per_byte * bytes;
  }

  // --- Under way.

  // Up to the next link that others may use meanwhile, or to where others arrive. Where it waits
  // there, in TreeRoutes::hops; kNowhere if it has come to its end.
  uint32_t Follow(Head head) {
    const uint32_t end = End(head.node, head.down);
    for (; head.hop < end; Cross(head)) {
      if (!IsAwaited(head.hop, head.down)) continue;
      waiting_.push(head);
      return head.hop;
    }
    return Arrive(head);
  }

  void Cross(Head& head) {
    const uint32_t link_number = routes_.hops[head.hop].link;
    const TreeRoutes::Link& link = routes_.links[link_number];
    const double bytes = BytesOf(head);
    const double start_us = std::max(head.at_us, free_us_[link_number]);
    free_us_[link_number] = start_us + WireUs(link, bytes);
    if (!head.down && head.hop == Begin(head.node, false)) {
      nodes_[head.node].may_offer_us = free_us_[link_number];
    }
    head.lag_us = std::max(link.us_per_byte * bytes, head.at_us + head.lag_us - start_us);
    head.at_us = start_us + link.pass_us;
    ++head.hop;
    if (head.hop == End(head.node, head.down) && !profile_.forward_includes_serialisation) {
      head.at_us += head.lag_us;
    }
  }

  uint32_t Arrive(const Head& head) {
    if (head.down) {
      Receive(head.node, head.packet, head.at_us);
    } else if (nodes_[tree_.parents[head.node]].takes_in_order) {
      Take(head);
    } else {
      waiting_.push(head);
      return head.hop;
    }
    return kNowhere;
  }

  void Handle(Head head) {
    const bool goes_on = head.hop < End(head.node, head.down);
    const bool is_offer = !head.down && IsLeaf(head.node) && head.hop == nodes_[head.node].waits_at;
    if (goes_on) {
      Cross(head);
      Follow(head);
    } else if (head.down) {
      Receive(head.node, head.packet, head.at_us);
    } else {
      Take(head);
    }
    if (is_offer) Offer(head.node);
  }

  // --- Up.

  // A leaf's next packet; all of them while nothing has to be waited for.
  void Offer(uint32_t leaf) {
    Node& node = nodes_[leaf];
    while (node.offered < up_.count) {
      const uint32_t packet = node.offered++;
      const double ready_us = LeaveUs(CostOf(leaf), leaf, false, up_.BytesOf(packet));
      node.waits_at = Follow({.at_us = std::max(node.may_offer_us, ready_us),
                              .node = leaf,
                              .packet = packet,
                              .hop = Begin(leaf, false)});
      if (node.waits_at != kNowhere) return;
    }
  }

  // The parent's turn to match and reduce.
  void Take(const Head& head) {
    const auto parent = static_cast<uint32_t>(tree_.parents[head.node]);
    Node& node = nodes_[parent];
    const NodeCost& cost = CostOf(parent);
    const double bytes = up_.BytesOf(head.packet);
    const double match_us = cost.match_us + cost.reduce_us_per_byte * reduced_share_ * bytes;
    const bool by_link = Begin(head.node, false) < head.hop;
    const double port_us = by_link ? WireUs(LinkAt(head.hop - 1), bytes) : 0;
    node.last_take_us =
        std::max({head.at_us, node.match_free_us, node.last_take_us + std::max(match_us, port_us)});
    node.match_free_us = node.last_take_us + match_us;
    if (--missing_[node.first_packet + head.packet] == 0) {
      HandOn(parent, head.packet, node.match_free_us);
    }
  }

  // A short packet does not overtake the one before it, where phi grows with the size.
  void HandOn(uint32_t n, uint32_t packet, double done_us) {
    if (tree_.parents[n] == AggregationTree::kNoParent) {
      root_done_us_ = std::max(root_done_us_, done_us);
      if (streams_) {
        Receive(n, packet, done_us);
      } else if (packet + 1 == up_.count) {
        waiting_.push({.at_us = done_us, .node = n, .hop = End(n, true), .down = true});
      }
      return;
    }
    double& handed_us = nodes_[n].handed_up_us;
    handed_us = std::max(handed_us, done_us + LeaveUs(CostOf(n), n, false, up_.BytesOf(packet)));
    Follow({.at_us = handed_us, .node = n, .packet = packet, .hop = Begin(n, false)});
  }

  // --- Down.

  // `n` has a packet of the result and copies it to its children.
  void Receive(uint32_t n, uint32_t packet, double now_us) {
    last_us_ = std::max(last_us_, now_us);
    const NodeCost& cost = CostOf(n);
    const double bytes = down_.BytesOf(packet);
    double turn_us = std::max(now_us, nodes_[n].may_copy_us);
    for (const uint32_t child : lists_.of(n)) {
      const uint32_t hop = Begin(child, true);
      const bool by_link = hop < End(child, true);
      double& handed_us = nodes_[child].handed_down_us;
      handed_us = std::max(handed_us, turn_us + cost.send_us + LeaveUs(cost, child, true, bytes));
      Follow({.at_us = handed_us, .node = child, .packet = packet, .hop = hop, .down = true});
      turn_us += std::max(cost.send_us, by_link ? WireUs(LinkAt(hop), bytes) : 0);
    }
    nodes_[n].may_copy_us = turn_us;
    const bool is_root = tree_.parents[n] == AggregationTree::kNoParent;
    if (is_root && !streams_ && packet + 1 < down_.count) {
      waiting_.push(
          {.at_us = turn_us, .node = n, .packet = packet + 1, .hop = End(n, true), .down = true});
    }
  }

  const CostProfile& profile_;
  const AggregationTree& tree_;
  const TreeRoutes& routes_;
  const ChildLists lists_;
  const bool streams_;  // a packet of the result leaves as soon as it is reduced
  const Train up_, down_;
  const double reduced_share_;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> waiting_;
  std::vector<double> free_us_;    // [link]
  std::vector<Node> nodes_;        // [node]
  std::vector<uint32_t> missing_;  // [inner node][packet] of children, not yet taken
  double root_done_us_ = 0;
  double last_us_ = 0;  // receipt
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
uint32_t MostFollowed(uint32_t nodes) {
  return static_cast<uint32_t>(std::max<uint64_t>(kMostPacketsFollowed / std::max(nodes, 1U), 2));
}

}  // namespace

uint64_t PacketsToFollow(const CostProfile& profile, const Payload& payload, uint32_t nodes) {
  const Pipeline pipeline = PipelineOf(profile, payload);
  const uint64_t most = MostFollowed(nodes);
  return nodes * (std::min(pipeline.more_up + 1, most) + std::min(pipeline.more_down + 1, most));
}

Prediction EvaluatePackets(const CostProfile& profile, const AggregationTree& tree,
                           absl::Span<const EdgeCost> edges, const TreeRoutes& routes,
                           const Payload& payload, double cutoff_us) {
  if (tree.parents.size() < 2) return {.total_us = profile.init_us};
  const Pipeline pipeline = PipelineOf(profile, payload);
  const uint32_t most = MostFollowed(tree.node_count());
  Walker walker(profile, tree, routes, payload, pipeline, most);
  walker.Run(cutoff_us - profile.init_us);
  Prediction prediction;
  prediction.aggregate_us = walker.root_done_us();
  prediction.distribute_us = walker.last_us() - walker.root_done_us();
  prediction.total_us = profile.init_us + walker.last_us();
  Pipeline rest = pipeline;  // packets that are not followed
  rest.more_up -= std::min<uint64_t>(rest.more_up, most - 1);
  rest.more_down -= std::min<uint64_t>(rest.more_down, most - 1);
  if (!rest.is_one_packet()) {
    AddPackets(rest, LinkStages(profile, tree, edges, routes, rest.packet), prediction);
  }
  return prediction;
}

}  // namespace coppice
