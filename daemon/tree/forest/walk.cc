#include "daemon/tree/forest/walk.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>

#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

// One head of one packet before a channel of its route, or at the end of it.
struct ForestEvent {
  double at_us;
  uint32_t node;  // child end of the edge
  uint32_t packet;
  uint16_t hop;
  bool down;

  friend bool operator>(const ForestEvent& a, const ForestEvent& b) {
    return std::tie(a.at_us, a.node, a.down, a.packet, a.hop) >
           std::tie(b.at_us, b.node, b.down, b.packet, b.hop);
  }
};

class ForestWalk {
 public:
  ForestWalk(absl::Span<const ShapedTree> trees, const ForestEdges& edges,
             const ForestRoutes& routes)
      : trees_(trees),
        edges_(edges),
        routes_(routes),
        profile_(routes.profile()),
        ranks_(static_cast<uint32_t>(trees[0].parents.size())) {
    for (const ShapedTree& tree : trees) children_.push_back(ChildrenOf(tree.parents));
    channel_free_.resize(routes.channels().size());
  }

  // Microseconds, T_init apart; `shares` are each tree's bytes.
  double Run(const std::vector<uint64_t>& shares) {
    Begin(shares);
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      if (children_[n / ranks_].of(n % ranks_).empty() && packets_[n / ranks_] > 0)
        Reduced(n, 0, 0);
    }
    while (!queue_.empty()) {
      const ForestEvent event = queue_.top();
      queue_.pop();
      Handle(event);
    }
    return last_us_;
  }

 private:
  struct NodeState {
    double take_us = -std::numeric_limits<double>::infinity();  // the last packet's turn
    double may_send_us = 0;
    uint32_t first_packet = 0;  // in missing_
  };

  void Begin(const std::vector<uint64_t>& shares) {
    shares_ = shares;
    packets_.clear();
    nodes_.assign(trees_.size() * ranks_, {});
    missing_.clear();
    const uint64_t mtu = profile_.mtu_bytes;
    for (uint32_t t = 0; t < trees_.size(); ++t) {
      packets_.push_back(static_cast<uint32_t>((shares[t] + mtu - 1) / mtu));
      for (uint32_t r = 0; r < ranks_; ++r) {
        const size_t children = children_[t].of(r).size();
        nodes_[t * ranks_ + r].first_packet = static_cast<uint32_t>(missing_.size());
        if (children > 0) {
          missing_.insert(missing_.end(), packets_[t], static_cast<uint32_t>(children));
        }
      }
    }
    std::fill(channel_free_.begin(), channel_free_.end(), 0.0);
    match_free_.assign(ranks_, 0);
    copy_free_.assign(ranks_, 0);
    last_us_ = 0;
  }

  uint64_t Bytes(uint32_t tree, uint32_t packet) const {
    const uint64_t mtu = profile_.mtu_bytes;
    return packet + 1 < packets_[tree] ? mtu : shares_[tree] - uint64_t{packet} * mtu;
  }
  double Wire(uint32_t hop, uint64_t bytes) const {
    return routes_.channels()[hop].us_per_byte * static_cast<double>(bytes + profile_.header_bytes);
  }
  double LeaveUs(absl::Span<const uint32_t> hops, uint64_t bytes) const {
    return hops.empty() ? profile_.same_host_us : profile_.nic.ForwardUs(bytes);
  }
  const ForestRoute& RouteOf(uint32_t n, bool down) const {
    return routes_.route(down ? edges_.down[n] : edges_.up[n]);
  }
  bool IsLeaf(uint32_t n) const { return children_[n / ranks_].of(n % ranks_).empty(); }

  // `n`, or its parent if downwards, lets a packet go at `at_us`.
  void Start(uint32_t n, uint32_t packet, bool down, double at_us) {
    const auto hops = routes_.hops(RouteOf(n, down));
    queue_.push({at_us + LeaveUs(hops, Bytes(n / ranks_, packet)), n, packet, 0, down});
  }

  bool IsRoot(uint32_t n) const {
    return trees_[n / ranks_].parents[n % ranks_] == AggregationTree::kNoParent;
  }

  void Handle(const ForestEvent& event) {
    if (IsRoot(event.node)) {
      Receive(event.node, event.packet, event.at_us);
      return;
    }
    const ForestRoute& route = RouteOf(event.node, event.down);
    const auto hops = routes_.hops(route);
    if (event.hop < hops.size()) {
      Cross(event, route, hops);
    } else if (event.down) {
      Receive(event.node, event.packet, event.at_us);
    } else {
      Take(event.node, event.packet, event.at_us, hops);
    }
  }

  void Cross(const ForestEvent& event, const ForestRoute& route, absl::Span<const uint32_t> hops) {
    const uint32_t hop = hops[event.hop];
    const uint64_t bytes = Bytes(event.node / ranks_, event.packet);
    const double start = std::max(event.at_us, channel_free_[hop]);
    channel_free_[hop] = start + Wire(hop, bytes);
    ForestEvent next = event;
    next.at_us = start + routes_.channels()[hop].head_us;
    ++next.hop;
    if (next.hop == hops.size()) next.at_us += route.tail_us_per_byte * static_cast<double>(bytes);
    queue_.push(next);
    if (event.hop == 0 && !event.down) {
      OfferNext(event.node, event.packet, channel_free_[hop], hops);
    }
  }

  // A leaf offers a packet when its port has sent the one before, or its host has taken it.
  void OfferNext(uint32_t n, uint32_t packet, double now, absl::Span<const uint32_t> hops) {
    const uint32_t tree = n / ranks_;
    if (!IsLeaf(n) || packet + 1 >= packets_[tree]) return;
    queue_.push({std::max(now, LeaveUs(hops, Bytes(tree, packet + 1))), n, packet + 1, 0, false});
  }

  void Take(uint32_t child, uint32_t packet, double now, absl::Span<const uint32_t> hops) {
    const uint32_t tree = child / ranks_;
    const auto rank = static_cast<uint32_t>(trees_[tree].parents[child % ranks_]);
    const uint32_t n = tree * ranks_ + rank;
    const uint64_t bytes = Bytes(tree, packet);
    const double match_us = profile_.nic.MatchUs(bytes);
    const double port_us = hops.empty() ? 0 : Wire(hops.back(), bytes);
    NodeState& node = nodes_[n];
    node.take_us = std::max({now, match_free_[rank], node.take_us + std::max(match_us, port_us)});
    match_free_[rank] = node.take_us + match_us;
    if (hops.empty()) OfferNext(child, packet, node.take_us, hops);
    if (--missing_[node.first_packet + packet] == 0) Reduced(n, packet, match_free_[rank]);
  }

  void Reduced(uint32_t n, uint32_t packet, double now) {
    if (IsRoot(n)) {
      queue_.push({now, n, packet, 0, true});
    } else {
      Start(n, packet, false, now);
    }
  }

  void Receive(uint32_t n, uint32_t packet, double now) {
    last_us_ = std::max(last_us_, now);
    const uint32_t tree = n / ranks_, rank = n % ranks_;
    const uint64_t bytes = Bytes(tree, packet);
    double turn = std::max(now, nodes_[n].may_send_us);
    for (const uint32_t child : children_[tree].of(rank)) {
      turn = std::max(turn, copy_free_[rank]);
      copy_free_[rank] = turn + profile_.nic.send_us;
      const uint32_t edge = tree * ranks_ + child;
      Start(edge, packet, true, copy_free_[rank]);
      const auto hops = routes_.hops(RouteOf(edge, true));
      turn += std::max(profile_.nic.send_us, hops.empty() ? 0 : Wire(hops.front(), bytes));
    }
    nodes_[n].may_send_us = turn;
  }

  absl::Span<const ShapedTree> trees_;
  const ForestEdges& edges_;
  const ForestRoutes& routes_;
  const CostProfile& profile_;
  uint32_t ranks_;
  std::vector<ChildLists> children_;  // [tree]

  std::vector<uint64_t> shares_;   // [tree] bytes
  std::vector<uint32_t> packets_;  // [tree]
  std::vector<NodeState> nodes_;   // [tree * ranks + rank]
  std::vector<uint32_t> missing_;  // [inner node][packet] children's packets not yet taken
  std::vector<double> channel_free_;
  std::vector<double> match_free_, copy_free_;  // [rank]
  std::priority_queue<ForestEvent, std::vector<ForestEvent>, std::greater<>> queue_;
  double last_us_ = 0;
};

template <class Visit>
void ForEachEdge(absl::Span<const ShapedTree> trees, Visit visit) {
  for (size_t t = 0; t < trees.size(); ++t) {
    const std::vector<int32_t>& parents = trees[t].parents;
    for (size_t r = 0; r < parents.size(); ++r) {
      if (parents[r] != AggregationTree::kNoParent) {
        visit(t, r, static_cast<uint32_t>(parents[r]), t * parents.size() + r);
      }
    }
  }
}

// A packet of each tree is a round.
uint64_t HopsOfRound(absl::Span<const ShapedTree> trees, const ForestEdges& edges,
                     const ForestRoutes& routes) {
  uint64_t hops = 0;
  ForEachEdge(trees, [&](size_t, size_t, uint32_t, size_t edge) {
    hops += routes.hops(routes.route(edges.up[edge])).size() +
            routes.hops(routes.route(edges.down[edge])).size() + 2;
  });
  return hops;
}

// Of a message that is followed in part: so many rounds, and twice as many. 0: all of it is.
uint64_t RoundsOfPart(absl::Span<const ShapedTree> trees, const ForestEdges& edges,
                      const ForestRoutes& routes, uint64_t bytes, uint64_t max_hops) {
  const uint64_t rounds = bytes / (uint64_t{routes.profile().mtu_bytes} * trees.size());
  const uint64_t most = max_hops / std::max<uint64_t>(1, HopsOfRound(trees, edges, routes));
  if (rounds <= std::max<uint64_t>(most, 3)) return 0;
  return std::max<uint64_t>(1, most / 3);
}

uint64_t PacketsOf(uint64_t bytes, uint64_t mtu) { return (bytes + mtu - 1) / mtu; }

}  // namespace

std::vector<uint64_t> SharesOf(absl::Span<const ShapedTree> trees, uint64_t bytes, uint32_t mtu) {
  const uint64_t unit = bytes >= uint64_t{mtu} * trees.size() ? mtu : 1;
  std::vector<uint64_t> shares;
  double sum = 0;
  uint64_t given = 0;
  for (size_t t = 0; t < trees.size(); ++t) {
    sum += trees[t].share;
    uint64_t until = t + 1 == trees.size()
                         ? bytes
                         : static_cast<uint64_t>(
                               sum * static_cast<double>(bytes) / static_cast<double>(unit) + 0.5) *
                               unit;
    until = std::clamp(until, given, bytes);
    shares.push_back(until - given);
    given = until;
  }
  return shares;
}

absl::StatusOr<ForestEdges> FindEdges(absl::Span<const ShapedTree> trees, ForestRoutes& routes) {
  ForestEdges edges;
  edges.up.resize(trees.size() * trees[0].parents.size());
  edges.down.resize(edges.up.size());
  absl::Status found;
  ForEachEdge(trees, [&](size_t, size_t rank, uint32_t parent, size_t edge) {
    const auto up = routes.Find(static_cast<uint32_t>(rank), parent);
    const auto down = routes.Find(parent, static_cast<uint32_t>(rank));
    found.Update(up.status());
    found.Update(down.status());
    if (!found.ok()) return;
    edges.up[edge] = *up;
    edges.down[edge] = *down;
  });
  RETURN_IF_ERROR(found);
  return edges;
}

double BusiestUs(absl::Span<const ShapedTree> trees, const ForestEdges& edges,
                 const ForestRoutes& routes, uint64_t bytes) {
  const CostProfile& profile = routes.profile();
  const std::vector<uint64_t> shares = SharesOf(trees, bytes, profile.mtu_bytes);
  std::vector<double> wire_bytes(routes.channels().size(), 0), reducing(trees[0].parents.size(), 0);
  ForEachEdge(trees, [&](size_t tree, size_t, uint32_t parent, size_t edge) {
    const auto packets = static_cast<double>(PacketsOf(shares[tree], profile.mtu_bytes));
    const double all = static_cast<double>(shares[tree]) + packets * profile.header_bytes;
    for (const uint32_t route : {edges.up[edge], edges.down[edge]}) {
      for (const uint32_t hop : routes.hops(routes.route(route))) wire_bytes[hop] += all;
    }
    reducing[parent] += packets * profile.nic.match_us +
                        static_cast<double>(shares[tree]) * profile.nic.reduce_us_per_byte;
  });
  double busiest = *std::max_element(reducing.begin(), reducing.end());
  for (size_t c = 0; c < wire_bytes.size(); ++c) {
    busiest = std::max(busiest, wire_bytes[c] * routes.channels()[c].us_per_byte);
  }
  return busiest;
}

double FirstPacketUs(absl::Span<const ShapedTree> trees, const ForestEdges& edges,
                     const ForestRoutes& routes) {
  const CostProfile& profile = routes.profile();
  const uint64_t bytes = profile.mtu_bytes;
  double longest = 0;
  for (size_t t = 0; t < trees.size(); ++t) {
    const std::vector<int32_t>& parents = trees[t].parents;
    std::vector<double> latency(parents.size(), -1);  // [rank] from the root and to it
    const auto edge_us = [&](size_t rank) {
      double us = profile.nic.MatchUs(bytes) + profile.nic.send_us;
      for (const uint32_t number :
           {edges.up[t * parents.size() + rank], edges.down[t * parents.size() + rank]}) {
        const ForestRoute& edge = routes.route(number);
        us += edge.begin == edge.end ? profile.same_host_us : profile.nic.ForwardUs(bytes);
        us += edge.tail_us_per_byte * static_cast<double>(bytes);
        for (const uint32_t hop : routes.hops(edge)) us += routes.channels()[hop].head_us;
      }
      return us;
    };
    std::vector<uint32_t> open;
    for (uint32_t r = 0; r < parents.size(); ++r) {
      uint32_t at = r;
      for (; latency[at] < 0 && parents[at] >= 0; at = static_cast<uint32_t>(parents[at])) {
        open.push_back(at);
      }
      if (latency[at] < 0) latency[at] = 0;
      for (; !open.empty(); open.pop_back()) {
        latency[open.back()] = latency[parents[open.back()]] + edge_us(open.back());
      }
      longest = std::max(longest, latency[r]);
    }
  }
  return longest;
}

double FollowForest(absl::Span<const ShapedTree> trees, const ForestEdges& edges,
                    const ForestRoutes& routes, uint64_t bytes, uint64_t max_hops) {
  const uint32_t mtu = routes.profile().mtu_bytes;
  const double init_us = routes.profile().init_us;
  ForestWalk walk(trees, edges, routes);
  const uint64_t rounds = RoundsOfPart(trees, edges, routes, bytes, max_hops);
  if (rounds == 0) return init_us + walk.Run(SharesOf(trees, bytes, mtu));
  const uint64_t first = rounds * trees.size() * mtu, second = 2 * first;
  const double first_us = walk.Run(SharesOf(trees, first, mtu));
  const double second_us = walk.Run(SharesOf(trees, second, mtu));
  return init_us + second_us +
         (second_us - first_us) * static_cast<double>(bytes - second) / static_cast<double>(first);
}

uint64_t HopsToFollow(absl::Span<const ShapedTree> trees, const ForestEdges& edges,
                      const ForestRoutes& routes, uint64_t bytes, uint64_t max_hops) {
  const uint64_t rounds = RoundsOfPart(trees, edges, routes, bytes, max_hops);
  const uint64_t round_bytes = trees.size() * routes.profile().mtu_bytes;
  return HopsOfRound(trees, edges, routes) * (rounds == 0 ? bytes / round_bytes + 1 : 3 * rounds);
}

}  // namespace coppice
