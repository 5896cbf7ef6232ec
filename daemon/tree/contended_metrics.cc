// One walk up and one down, each driven by a heap of packets that are before a shared link:
//
//   done(v) --phi--> link --> link (shared: wait for the time, then for the wire) --> ... parent
//
// A way is followed at once up to the next shared link. Times only grow along it, so that whoever
// is taken from the heap is the next to come to its link.
#include "daemon/tree/contended_metrics.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/tree/closed_form.h"
#include "daemon/tree/packet_bound.h"
#include "daemon/tree/packet_metrics.h"
#include "daemon/tree/pipelining.h"

namespace coppice {
namespace {

using Sharing = TreeRoutes::Sharing;

// A packet's head at a place of its way, its tail `lag_us` later.
struct Head {
  double at_us = 0;
  double lag_us = 0;
  uint32_t node = 0;  // child end of its edge
  uint32_t hop = 0;   // to be crossed, in TreeRoutes::hops
  bool operator>(const Head& other) const {
    return at_us != other.at_us ? at_us > other.at_us : node > other.node;
  }
};

class ContendedWalker {
 public:
  ContendedWalker(const CostProfile& profile, const AggregationTree& tree,
                  absl::Span<const EdgeCost> edges, const TreeRoutes& routes)
      : profile_(profile),
        tree_(tree),
        edges_(edges),
        routes_(routes),
        lists_(ChildrenOf(tree.parents)) {}

  Prediction Predict(const Payload& payload) {
    packet_ = payload;
    Prediction prediction;
    prediction.aggregate_us = Aggregate();
    prediction.distribute_us = Distribute();
    prediction.total_us = profile_.init_us + prediction.aggregate_us + prediction.distribute_us;
    return prediction;
  }

 private:
  const NodeCost& CostOf(uint32_t node) const {
    return tree_.IsRank(node) ? profile_.nic : profile_.switch_;
  }
  uint64_t bytes() const { return down_ ? packet_.down_bytes : packet_.up_bytes; }
  double LinkWireUs(const TreeRoutes::Link& link) const {
    return link.us_per_byte * static_cast<double>(bytes() + profile_.header_bytes);
  }

  void Begin(bool down) {
    down_ = down;
    free_us_.assign(routes_.links.size(), 0);
    heads_.assign(tree_.node_count(), Head{});
    ready_.clear();
  }

  double Aggregate() {
    Begin(false);
    missing_.assign(tree_.node_count(), 0);
    for (uint32_t node = 0; node < tree_.node_count(); ++node) {
      missing_[node] = static_cast<uint32_t>(lists_.of(node).size());
      if (missing_[node] == 0) ready_.push_back(node);
    }
    double root_us = 0;
    Run([&](uint32_t node) {
      const double done_us = Done(node);
      if (tree_.parents[node] == AggregationTree::kNoParent) {
        root_us = done_us;
      } else {
        Leave(node, node, done_us);
      }
    });
    return root_us;
  }

  double Distribute() {
    Begin(true);
    ready_.push_back(tree_.root());
    double last_us = 0;
    Run([&](uint32_t node) {
      double turn_us = heads_[node].at_us;
      last_us = std::max(last_us, turn_us);
      const double send_us = CostOf(node).send_us;
      for (const uint32_t child : lists_.of(node)) {
        Leave(node, child, turn_us + send_us);
        const double port_us = WireUs(profile_, packet_.down_bytes, edges_[child].port_gbps_down);
        turn_us += std::max(send_us, port_us);
      }
    });
    return last_us;
  }

  // Handles nodes that are ready, and lets packets that wait for a shared link go on, by time.
  template <class Handler>
  void Run(const Handler& handle) {
    while (true) {
      while (!ready_.empty()) {
        const uint32_t node = ready_.back();
        ready_.pop_back();
        handle(node);
      }
      if (waiting_.empty()) return;
      const Head head = waiting_.top();
      waiting_.pop();
      Follow(Cross(head));
    }
  }

  // `sender` hands on, over the edge of `child`.
  void Leave(uint32_t sender, uint32_t child, double at_us) {
    const uint32_t first = routes_.begin[2 * child + (down_ ? 1 : 0)];
    const uint32_t end = routes_.begin[2 * child + (down_ ? 2 : 1)];
    if (first == end) {
      Arrive({.at_us = at_us + profile_.same_host_us, .node = child, .hop = end});
      return;
    }
    const NodeCost& cost = CostOf(sender);
    at_us += cost.forward_us + static_cast<double>(bytes()) * cost.forward_us_per_byte;
    Follow({.at_us = at_us, .node = child, .hop = first});
  }

  // Up to the next link that others share, or the end of the way.
  void Follow(Head head) {
    const uint32_t end = routes_.begin[2 * head.node + (down_ ? 2 : 1)];
    for (; head.hop < end; head = Cross(head)) {
      const Sharing sharing = routes_.hops[head.hop].sharing;
      if (sharing == Sharing::kOthers) {
        waiting_.push(head);
        return;
      }
      if (sharing == Sharing::kSiblings && !down_) break;  // Done() sees to it
    }
    if (head.hop == end && !profile_.forward_includes_serialisation) head.at_us += head.lag_us;
    Arrive(head);
  }

  Head Cross(Head head) {
    const TreeRoutes::Hop& hop = routes_.hops[head.hop];
    const TreeRoutes::Link& link = routes_.links[hop.link];
    double start_us = head.at_us;
    if (hop.sharing != Sharing::kNone) {
      start_us = std::max(start_us, free_us_[hop.link]);
      free_us_[hop.link] = start_us + LinkWireUs(link);
    }
    const double wire_us = link.us_per_byte * static_cast<double>(bytes());
    head.lag_us = std::max(wire_us, head.at_us + head.lag_us - start_us);
    head.at_us = start_us + link.pass_us;
    ++head.hop;
    return head;
  }

  // Upwards a packet is at its parent, or before the parent's port; downwards at the child.
  void Arrive(const Head& head) {
    heads_[head.node] = head;
    if (down_) {
      ready_.push_back(head.node);
    } else if (--missing_[tree_.parents[head.node]] == 0) {
      ready_.push_back(static_cast<uint32_t>(tree_.parents[head.node]));
    }
  }

  // When `node` has taken the packets of all its children.
  double Done(uint32_t node) {
    const absl::Span<const uint32_t> children = lists_.of(node);
    if (children.empty()) return 0;
    taken_.clear();
    for (const uint32_t child : children) taken_.push_back(heads_[child]);
    SortTaken();
    for (Head& head : taken_) {  // through the port
      if (head.hop == routes_.begin[2 * head.node + 1]) continue;
      head = Cross(head);
      if (!profile_.forward_includes_serialisation) head.at_us += head.lag_us;
    }
    SortTaken();
    const double match_us = MatchUs(CostOf(node));
    double start_us = taken_.front().at_us;
    for (size_t i = 1; i < taken_.size(); ++i) {
      const double port_us =
          WireUs(profile_, packet_.up_bytes, edges_[taken_[i].node].port_gbps_up);
      start_us = std::max(taken_[i].at_us, start_us + std::max(match_us, port_us));
    }
    return start_us + match_us;
  }

  void SortTaken() {
    const auto before = [](const Head& a, const Head& b) { return b > a; };
    if (!std::is_sorted(taken_.begin(), taken_.end(), before)) {
      std::sort(taken_.begin(), taken_.end(), before);
    }
  }

  double MatchUs(const NodeCost& cost) const {
    return cost.match_us + static_cast<double>(packet_.reduced_bytes) * cost.reduce_us_per_byte;
  }

  const CostProfile& profile_;
  const AggregationTree& tree_;
  absl::Span<const EdgeCost> edges_;
  const TreeRoutes& routes_;
  const ChildLists lists_;
  Payload packet_;  // the only one
  bool down_ = false;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> waiting_;  // for a shared link
  std::vector<double> free_us_;                                           // [link]
  std::vector<Head> heads_;        // [node] where its packet has come to
  std::vector<uint32_t> missing_;  // [node] packets of children that have not come
  std::vector<uint32_t> ready_;    // nodes to be handled
  std::vector<Head> taken_;        // by the node at hand
};

constexpr double kNoCutoff = std::numeric_limits<double>::infinity();
constexpr double kBoundRounding = 1e-6;  // of LeastContendedUs

bool IsLong(const CostProfile& profile, const Payload& payload) {
  return !PipelineOf(profile, payload).is_one_packet();
}

}  // namespace

Prediction EvaluateContended(const CostProfile& profile, const AggregationTree& tree,
                             absl::Span<const EdgeCost> edges, const TreeRoutes& routes,
                             const Payload& payload) {
  if (tree.parents.empty()) return {};
  if (IsLong(profile, payload)) {
    return EvaluatePackets(profile, tree, edges, routes, payload, kNoCutoff);
  }
  return ContendedWalker(profile, tree, edges, routes).Predict(payload);
}

Prediction EvaluateContendedMix(const CostProfile& profile, const AggregationTree& tree,
                                absl::Span<const EdgeCost> edges, const TreeRoutes& routes,
                                Operation operation, absl::Span<const SizeShare> sizes,
                                double cutoff_us) {
  if (tree.parents.empty() || sizes.empty()) return {};
  if (sizes.size() == 1) {
    const Payload payload = PayloadOf(operation, sizes[0].bytes);
    if (IsLong(profile, payload)) {
      return EvaluatePackets(profile, tree, edges, routes, payload, cutoff_us);
    }
  }
  return MeanOver(sizes, [&](uint64_t bytes) {
    return EvaluateContended(profile, tree, edges, routes, PayloadOf(operation, bytes));
  });
}

double LeastContendedUs(const CostProfile& profile, const AggregationTree& tree,
                        absl::Span<const EdgeCost> edges, const TreeRoutes& routes,
                        Operation operation, absl::Span<const SizeShare> sizes) {
  if (tree.parents.empty() || sizes.empty()) return 0;
  const Prediction least = MeanOver(sizes, [&](uint64_t bytes) {
    const Payload payload = PayloadOf(operation, bytes);
    if (!IsLong(profile, payload)) return Evaluate(profile, tree, edges, payload);
    return Prediction{.total_us = BoundPackets(profile, tree, routes, payload).least_us};
  });
  return least.total_us;
}

bool AnyIsLong(const CostProfile& profile, Operation operation, absl::Span<const SizeShare> sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [&](const SizeShare& share) {
    return share.weight > 0 && IsLong(profile, PayloadOf(operation, share.bytes));
  });
}

bool QueuesMayMatter(const CostProfile& profile, Operation operation,
                     absl::Span<const SizeShare> sizes, uint32_t nodes, double slowest_gbps) {
  constexpr double kNoticed = 0.1;
  const Prediction most = MeanOver(sizes, [&](uint64_t bytes) {
    const Payload payload = PayloadOf(operation, bytes);
    const Pipeline pipeline = PipelineOf(profile, payload);
    const double packets =
        2 + static_cast<double>(pipeline.more_up) + static_cast<double>(pipeline.more_down);
    const double bytes_both_ways = static_cast<double>(payload.up_bytes) +
                                   static_cast<double>(payload.down_bytes) +
                                   packets * profile.header_bytes;
    return Prediction{.total_us = bytes_both_ways * SerialisationUs(1, slowest_gbps) * nodes};
  });
  return most.total_us > kNoticed * BothWays(profile, TreeType::kTypeI, operation, sizes).once_us;
}

bool FollowsPackets(const CostProfile& profile, Operation operation,
                    absl::Span<const SizeShare> sizes, uint32_t ranks) {
  return ranks <= kMaxRanksContended && AnyIsLong(profile, operation, sizes) &&
         PacketsToFollow(profile, operation, sizes, ranks) <= kMaxPacketsJudged;
}

absl::Status AddContention(const Snapshot& snapshot, const CostProfile& profile,
                           const AggregationTree& tree, absl::Span<const EdgeCost> edges,
                           Operation operation, absl::Span<const SizeShare> sizes,
                           Prediction& predicted, double cutoff_us) {
  if (tree.rank_count > kMaxRanksContended || sizes.empty()) return absl::OkStatus();
  double slowest_gbps = 0;
  for (const EdgeCost& edge : edges) {
    for (const double gbps : {edge.min_gbps_up, edge.min_gbps_down}) {
      if (gbps > 0 && (slowest_gbps == 0 || gbps < slowest_gbps)) slowest_gbps = gbps;
    }
  }
  const bool any_is_long = AnyIsLong(profile, operation, sizes);
  if (any_is_long && !FollowsPackets(profile, operation, sizes, tree.rank_count)) {
    return absl::OkStatus();
  }
  if (!any_is_long &&
      !QueuesMayMatter(profile, operation, sizes, tree.node_count(), slowest_gbps)) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const TreeRoutes routes, FindRoutes(snapshot, profile, tree));
  if (!any_is_long && !routes.shares) return absl::OkStatus();
  if (any_is_long && cutoff_us < kNoCutoff) {
    const double least_us =
        LeastContendedUs(profile, tree, edges, routes, operation, sizes) * (1 - kBoundRounding);
    if (least_us >= cutoff_us) {
      predicted.total_us = least_us;
      return absl::OkStatus();
    }
  }
  const Prediction contended =
      EvaluateContendedMix(profile, tree, edges, routes, operation, sizes, cutoff_us);
  if (any_is_long || contended.total_us > predicted.total_us) predicted = contended;
  return absl::OkStatus();
}

}  // namespace coppice
