#include "tests/unit/tree/event_simulation.h"

#include <algorithm>
#include <deque>
#include <queue>
#include <tuple>
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

 private:
  struct Node {
    uint32_t missing = 0;          // packets of children not yet started
    std::deque<uint32_t> waiting;  // children whose packets have arrived
    bool start_is_due = false;
    double last_start = -1;  // < 0: none yet
  };

  const NodeCost& Cost(uint32_t n) const {
    return n < tree_.rank_count ? profile_.nic : profile_.switch_;
  }
  static double Wire(uint64_t bytes, double gbps) {
    return gbps == 0 ? 0 : 8.0 * static_cast<double>(bytes) / (gbps * 1000);
  }
  double Phi(uint32_t n, uint64_t bytes) const {
    return Cost(n).forward_us + Cost(n).forward_us_per_byte * static_cast<double>(bytes);
  }
  double Match(uint32_t n) const {
    return Cost(n).match_us +
           Cost(n).reduce_us_per_byte * static_cast<double>(payload_.reduced_bytes);
  }
  double Serial(uint64_t bytes, double gbps) const {
    return profile_.forward_includes_serialisation ? 0 : Wire(bytes, gbps);
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
  return Simulation(profile, tree, edges, payload).Run();
}

}  // namespace coppice
