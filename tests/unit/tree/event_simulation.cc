#include "tests/unit/tree/event_simulation.h"

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace coppice {
namespace {

enum class What { kArrival, kStart, kDone, kReceived, kLeft };

struct Event {
  double at;
  What what;
  uint32_t node;  // kArrival, kLeft: the child; else the node where it happens
  bool operator>(const Event& other) const {
    return std::tie(at, what, node) > std::tie(other.at, other.what, other.node);
  }
};

class Simulation {
 public:
  Simulation(const CostProfile& profile, const AggregationTree& tree,
             absl::Span<const EdgeCost> edges, const Payload& payload)
      : profile_(profile),
        tree_(tree),
        edges_(edges),
        payload_(payload),
        nodes_(tree.node_count()) {
    for (uint32_t n = 0; n < tree.node_count(); ++n) {
      if (tree.parents[n] >= 0) ++nodes_[tree.parents[n]].missing;
    }
  }

  Prediction Run() {
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].missing == 0) queue_.push({0, What::kDone, n});
    }
    while (!queue_.empty()) {
      const Event event = queue_.top();
      queue_.pop();
      Handle(event);
    }
    return {.aggregate_us = aggregated_,
            .distribute_us = last_received_ - aggregated_,
            .total_us = profile_.init_us + last_received_};
  }

  // The slowest of all that one packet of everybody occupies: nodes' units and wires, of the
  // packets that come `up` and go `down`.
  double SlowestStage(bool up, bool down) const {
    std::map<std::pair<uint32_t, std::string>, double> busy;
    for (uint32_t n = 0; n < tree_.node_count(); ++n) {
      if (tree_.parents[n] < 0) continue;
      const auto parent = static_cast<uint32_t>(tree_.parents[n]);
      const EdgeCost& edge = edges_[n];
      const double up_port = Wire(payload_.up_bytes, edge.port_gbps_up);
      const double down_port = Wire(payload_.down_bytes, edge.port_gbps_down);
      if (up) busy[{parent, "takes"}] += std::max(Match(parent), up_port);
      if (down) busy[{parent, "sends"}] += std::max(Cost(parent).send_us, down_port);
      if (up) busy[{n, "way up"}] = Wire(payload_.up_bytes, edge.min_gbps_up);
      if (down) busy[{n, "way down"}] = Wire(payload_.down_bytes, edge.min_gbps_down);
      if (!up || !down || parent >= tree_.rank_count) continue;
      busy[{parent, "port in"}] += up_port;
      busy[{parent, "port out"}] += down_port;
      if (tree_.parents[parent] < 0 || edges_[parent].links_up == 0 || edge.links_up == 0) continue;
      if (!IsFirstFromOutside(n)) continue;
      busy[{parent, "port in"}] += Wire(payload_.down_bytes, edge.port_gbps_up);
      busy[{parent, "port out"}] += Wire(payload_.up_bytes, edge.port_gbps_down);
    }
    double slowest = 0;
    for (const auto& [what, us] : busy) slowest = std::max(slowest, us);
    return slowest;
  }

 private:
  bool IsFirstFromOutside(uint32_t n) const {
    for (uint32_t sibling = 0; sibling < n; ++sibling) {
      if (tree_.parents[sibling] == tree_.parents[n] && edges_[sibling].links_up > 0) return false;
    }
    return true;
  }

  struct Node {
    uint32_t missing = 0;          // packets of children not yet started
    std::deque<uint32_t> waiting;  // children whose packets have arrived
    bool start_is_due = false;
    double last_start = -1;  // < 0: none yet
  };

  const NodeCost& Cost(uint32_t n) const {
    return n < tree_.rank_count ? profile_.nic : profile_.switch_;
  }
  double Wire(uint64_t bytes, double gbps) const {
    return gbps == 0 ? 0 : 8.0 * static_cast<double>(bytes + profile_.header_bytes) / (gbps * 1000);
  }
  double Phi(uint32_t n, uint64_t bytes) const {
    return Cost(n).forward_us + Cost(n).forward_us_per_byte * static_cast<double>(bytes);
  }
  double Match(uint32_t n) const {
    return Cost(n).match_us +
           Cost(n).reduce_us_per_byte * static_cast<double>(payload_.reduced_bytes);
  }
  double Serial(uint64_t bytes, double gbps) const {
    if (profile_.forward_includes_serialisation || gbps == 0) return 0;
    return 8.0 * static_cast<double>(bytes) / (gbps * 1000);
  }

  void Handle(const Event& event) {
    const uint32_t n = event.node;
    switch (event.what) {
      case What::kArrival:
        nodes_[tree_.parents[n]].waiting.push_back(n);
        ScheduleStart(tree_.parents[n], event.at);
        break;
      case What::kStart: {
        Node& node = nodes_[n];
        node.start_is_due = false;
        node.last_start = event.at;
        node.waiting.pop_front();
        if (--node.missing == 0) queue_.push({event.at + Match(n), What::kDone, n});
        ScheduleStart(n, event.at);
        break;
      }
      case What::kDone:
        if (tree_.parents[n] < 0) {
          aggregated_ = event.at;
          queue_.push({event.at, What::kReceived, n});
        } else {
          double way = edges_[n].time_up_us;
          if (edges_[n].links_up > 0) {  // else within a host
            way += Phi(n, payload_.up_bytes) + Serial(payload_.up_bytes, edges_[n].min_gbps_up);
          }
          queue_.push({event.at + way, What::kArrival, n});
        }
        break;
      case What::kReceived:
        last_received_ = std::max(last_received_, event.at);
        SendNext(n, 0, event.at);
        break;
      case What::kLeft: {
        const uint32_t sender = tree_.parents[n];
        double way = edges_[n].time_down_us;
        if (edges_[n].links_down > 0) {
          way += Phi(sender, payload_.down_bytes) +
                 Serial(payload_.down_bytes, edges_[n].min_gbps_down);
        }
        queue_.push({event.at + way, What::kReceived, n});
        const double begun = event.at - Cost(sender).send_us;
        const double next =
            std::max(Cost(sender).send_us, Wire(payload_.down_bytes, edges_[n].port_gbps_down));
        SendNext(sender, n + 1, begun + next);
        break;
      }
    }
  }

  // The next copy, to the first child from number `from` on, begins at `begin`.
  void SendNext(uint32_t sender, uint32_t from, double begin) {
    for (uint32_t c = from; c < tree_.node_count(); ++c) {
      if (tree_.parents[c] != static_cast<int32_t>(sender)) continue;
      queue_.push({begin + Cost(sender).send_us, What::kLeft, c});
      return;
    }
  }

  void ScheduleStart(uint32_t n, double now) {
    Node& node = nodes_[n];
    if (node.start_is_due || node.waiting.empty()) return;
    const double port = Wire(payload_.up_bytes, edges_[node.waiting.front()].port_gbps_up);
    const double earliest = node.last_start < 0 ? now : node.last_start + std::max(Match(n), port);
    node.start_is_due = true;
    queue_.push({std::max(now, earliest), What::kStart, n});
  }

  const CostProfile& profile_;
  const AggregationTree& tree_;
  absl::Span<const EdgeCost> edges_;
  const Payload& payload_;
  std::vector<Node> nodes_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  double aggregated_ = 0, last_received_ = 0;
};

}  // namespace

Prediction Simulate(const CostProfile& profile, const AggregationTree& tree,
                    absl::Span<const EdgeCost> edges, const Payload& payload) {
  const uint64_t mtu = profile.mtu_bytes;
  const uint64_t up = std::max<uint64_t>(1, (payload.up_bytes + mtu - 1) / mtu);
  const uint64_t down = std::max<uint64_t>(1, (payload.down_bytes + mtu - 1) / mtu);
  Payload first = {.up_bytes = std::min(payload.up_bytes, mtu),
                   .down_bytes = std::min(payload.down_bytes, mtu)};
  first.reduced_bytes = payload.reduced_bytes == 0 ? 0 : first.up_bytes;  // all or nothing
  const Simulation simulation(profile, tree, edges, first);
  Prediction all = Simulation(profile, tree, edges, first).Run();
  const auto after_first = [](uint64_t packets) { return static_cast<double>(packets - 1); };
  double more_us = after_first(up) * simulation.SlowestStage(true, false) +
                   after_first(down) * simulation.SlowestStage(false, true);
  if (up == down) more_us = after_first(up) * simulation.SlowestStage(true, true);
  all.total_us += more_us;
  return all;
}

}  // namespace coppice
