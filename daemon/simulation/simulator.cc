// The event loop. An event is a packet's head before the next channel of its way, or at the end:
//
//     child   --hop 0--> switch --hop 1--> ... --> parent: take, reduce; with the last one missing,
//       phi                                          hand on: a new event one edge higher
#include "daemon/simulation/simulator.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "daemon/base/status_macros.h"
#include "daemon/simulation/channels.h"

namespace coppice {
namespace {

// A packet's head at a place of its way. There is at most one event of a packet at a time, so that
// the order is total, whatever order events are added in.
struct Event {
  double at_us = 0;
  double lag_us = 0;    // how far the tail is behind the head
  uint32_t node = 0;    // child end of the edge that it crosses, in Layout::nodes
  uint32_t packet = 0;  // of the node's train
  uint32_t hop = 0;     // channel of the route that it is to enter; the route's length: it is there
  bool down = false;

  friend bool operator>(const Event& a, const Event& b) {
    return std::tie(a.at_us, a.node, a.down, a.packet, a.hop) >
           std::tie(b.at_us, b.node, b.down, b.packet, b.hop);
  }
};

class Running {
 public:
  Running(const Layout& layout, uint64_t seed)
      : layout_(layout),
        channels_(layout, seed),
        nodes_(layout.nodes.size()),
        units_(layout.unit_count),
        missing_(layout.packet_counters),
        up_packets_(layout.channels.size(), 0),
        roots_(layout.collectives.size()) {
    for (const NodeLayout& node : layout.nodes) {
      const uint32_t packets = TreeOf(node).up.count;
      if (node.child_count > 0) {
        std::fill_n(missing_.begin() + node.first_packet, packets, node.child_count);
      }
    }
  }

  SimulationResult Run() {
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      if (layout_.nodes[n].child_count == 0) HandOn(n, 0, layout_.nodes[n].own_data_us);
    }
    for (; !queue_.empty(); ++events_) {
      const Event event = queue_.top();
      queue_.pop();
      Handle(event);
    }
    return Result();
  }

 private:
  struct NodeState {
    double last_take_us = -std::numeric_limits<double>::infinity();
    double may_send_us = 0;
    double finish_us = 0;                         // has the last packet of the result
    double handed_up_us = 0, handed_down_us = 0;  // last packet that started to, from the parent
  };
  struct UnitState {
    double match_free_us = 0, copy_free_us = 0;
  };
  struct RootState {
    uint32_t reduced = 0;  // packets
    double done_us = 0;
  };

  const CollectiveLayout& TreeOf(const NodeLayout& node) const {
    return layout_.collectives[node.collective];
  }
  const NodeCost& CostOf(const NodeLayout& node) const {
    return node.is_rank ? layout_.profile.nic : layout_.profile.switch_;
  }
  static double ForwardUs(const NodeCost& cost, uint64_t bytes) {
    return cost.forward_us + cost.forward_us_per_byte * static_cast<double>(bytes);
  }
  double WireUs(uint32_t hop, uint64_t bytes) const {
    return layout_.channels[layout_.hops[hop]].us_per_byte *
           static_cast<double>(bytes + layout_.header_bytes);
  }

  // What a packet waits for between its node and the first channel of its way: phi, or within a
  // host, where nothing is stored and forwarded, the host.
  double LeaveUs(const NodeLayout& edge, const NodeCost& sender, bool down, uint64_t bytes) const {
    const bool within_host = down ? edge.down == edge.end : edge.up == edge.down;
    return within_host ? layout_.profile.same_host_us : ForwardUs(sender, bytes);
  }

  // `n` or, downwards, its parent hands a packet on at `at_us`. A short one does not overtake: it
  // waits where phi grows with the size.
  void Start(uint32_t n, uint32_t packet, bool down, const NodeCost& sender, double at_us) {
    const NodeLayout& node = layout_.nodes[n];
    const PacketTrain& train = down ? TreeOf(node).down : TreeOf(node).up;
    at_us += LeaveUs(node, sender, down, train.Bytes(packet));
    double& last_us = down ? nodes_[n].handed_down_us : nodes_[n].handed_up_us;
    at_us = last_us = std::max(last_us, at_us);
    queue_.push({.at_us = at_us, .node = n, .packet = packet, .down = down});
  }

  void Handle(const Event& event) {
    const NodeLayout& node = layout_.nodes[event.node];
    const uint32_t begin = event.down ? node.down : node.up;
    const uint32_t end = event.down ? node.end : node.down;
    const PacketTrain& train = event.down ? TreeOf(node).down : TreeOf(node).up;
    if (begin + event.hop < end) {
      Cross(event, layout_.hops[begin + event.hop], begin + event.hop + 1 == end,
            train.Bytes(event.packet));
    } else if (event.down) {
      Receive(event.node, event.packet, event.at_us);
    } else {
      Take(event.node, event.packet, event.at_us);
    }
  }

  void Cross(const Event& event, uint32_t channel, bool last, uint64_t bytes) {
    const Crossing on = channels_.Cross(channel, event.at_us, event.lag_us, bytes);
    if (!event.down) ++up_packets_[channel];
    Event next = event;
    next.lag_us = on.tail_us - on.head_us;
    next.at_us = on.head_us + layout_.profile.link_us;
    if (last && !layout_.profile.forward_includes_serialisation) next.at_us += next.lag_us;
    ++next.hop;
    queue_.push(next);
    if (event.hop == 0 && !event.down) HandOnNext(event.node, event.packet, on.free_us);
  }

  // A leaf has all packets at once; it offers each when its port has sent the one before, or its
  // parent in the same host has taken that.
  void HandOnNext(uint32_t n, uint32_t packet, double now) {
    const NodeLayout& node = layout_.nodes[n];
    if (node.child_count > 0 || packet + 1 >= TreeOf(node).up.count) return;
    const double ready =
        node.own_data_us + LeaveUs(node, CostOf(node), false, TreeOf(node).up.Bytes(packet + 1));
    queue_.push({.at_us = std::max(now, ready), .node = n, .packet = packet + 1});
  }

  // The parent of `child` takes one of its packets, when it has taken those before.
  void Take(uint32_t child, uint32_t packet, double now) {
    const NodeLayout& edge = layout_.nodes[child];
    const NodeLayout& node = layout_.nodes[edge.parent];
    NodeState& state = nodes_[edge.parent];
    const CollectiveLayout& tree = TreeOf(node);
    const uint64_t bytes = tree.up.Bytes(packet);
    const double match_us = CostOf(node).match_us + CostOf(node).reduce_us_per_byte *
                                                        tree.reduced_share *
                                                        static_cast<double>(bytes);
    const double port_us = edge.up < edge.down ? WireUs(edge.down - 1, bytes) : 0;
    double& unit_free_us = units_[node.unit].match_free_us;
    const double start =
        std::max({now, unit_free_us, state.last_take_us + std::max(match_us, port_us)});
    state.last_take_us = start;
    unit_free_us = start + match_us;
    if (edge.up == edge.down) HandOnNext(child, packet, start);
    if (--missing_[node.first_packet + packet] == 0) {
      HandOn(edge.parent, packet, std::max(start + match_us, node.own_data_us));
    }
  }

  // Node `n` has reduced `packet` at `done`.
  void HandOn(uint32_t n, uint32_t packet, double done) {
    const NodeLayout& node = layout_.nodes[n];
    const CollectiveLayout& tree = TreeOf(node);
    if (node.parent != NodeLayout::kNoParent) {
      Start(n, packet, false, CostOf(node), done);
      return;
    }
    RootState& root = roots_[node.collective];
    root.done_us = std::max(root.done_us, done);
    ++root.reduced;
    const bool all = node.child_count == 0 || root.reduced == tree.up.count;
    if (Streams(tree, node)) {
      queue_.push({.at_us = done, .node = n, .packet = packet, .down = true});
    } else if (all) {
      queue_.push({.at_us = root.done_us, .node = n, .packet = 0, .down = true});
    }
  }

  // True: packet i of the result is packet i of what came up. A lone root has everything at once.
  static bool Streams(const CollectiveLayout& tree, const NodeLayout& root) {
    return tree.up.count == tree.down.count && root.child_count > 0;
  }

  // Node `n` has `packet` of the result, and copies it to its children.
  void Receive(uint32_t n, uint32_t packet, double now) {
    const NodeLayout& node = layout_.nodes[n];
    const CollectiveLayout& tree = TreeOf(node);
    const NodeCost& cost = CostOf(node);
    NodeState& state = nodes_[n];
    state.finish_us = std::max(state.finish_us, now);
    const uint64_t bytes = tree.down.Bytes(packet);
    double& unit_free_us = units_[node.unit].copy_free_us;
    double turn = std::max(now, state.may_send_us);
    for (uint32_t c = node.first_child; c < node.first_child + node.child_count; ++c) {
      const uint32_t child = layout_.children[c];
      const NodeLayout& edge = layout_.nodes[child];
      turn = std::max(turn, unit_free_us);
      unit_free_us = turn + cost.send_us;
      Start(child, packet, true, cost, unit_free_us);
      const double port_us = edge.down < edge.end ? WireUs(edge.down, bytes) : 0;
      turn += std::max(cost.send_us, port_us);
    }
    state.may_send_us = turn;
    const bool is_root = node.parent == NodeLayout::kNoParent;
    if (is_root && !Streams(tree, node) && packet + 1 < tree.down.count) {
      queue_.push({.at_us = std::max(now, turn), .node = n, .packet = packet + 1, .down = true});
    }
  }

  SimulationResult Result() const {
    SimulationResult result;
    const double init_us = layout_.profile.init_us;
    for (size_t i = 0; i < layout_.collectives.size(); ++i) {
      const CollectiveLayout& tree = layout_.collectives[i];
      CollectiveTimes times;
      double last = 0;
      for (uint32_t rank = 0; rank < tree.rank_count; ++rank) {
        const double finish = nodes_[tree.first_node + rank].finish_us - tree.start_us;
        last = std::max(last, finish);
        times.finish_us.push_back(init_us + finish);
      }
      times.aggregate_us = roots_[i].done_us - tree.start_us;
      times.distribute_us = last - times.aggregate_us;
      times.total_us = init_us + last;
      result.collectives.push_back(std::move(times));
    }
    result.channels = channels_.Uses();
    for (size_t c = 0; c < result.channels.size(); ++c) {
      result.channels[c].up_packets = up_packets_[c];
    }
    result.events = events_;
    return result;
  }

  const Layout& layout_;
  Channels channels_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;  // the earliest first
  uint64_t events_ = 0;
  std::vector<NodeState> nodes_;
  std::vector<UnitState> units_;
  std::vector<uint32_t> missing_;     // [inner node][packet] children's packets not yet taken
  std::vector<uint64_t> up_packets_;  // [channel]
  std::vector<RootState> roots_;      // [collective]
};

}  // namespace

absl::StatusOr<Simulator> Simulator::Prepare(const Snapshot& snapshot, const CostProfile& profile,
                                             absl::Span<const SimulatedCollective> collectives,
                                             const SimulationOptions& options) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Layout> layout,
                   LayOut(snapshot, profile, collectives, options));
  return Simulator(std::move(layout));
}

SimulationResult Simulator::Run(uint64_t seed) const { return Running(*layout_, seed).Run(); }

uint64_t Simulator::event_count() const { return layout_->event_count; }

}  // namespace coppice
