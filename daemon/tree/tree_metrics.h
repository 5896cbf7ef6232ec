// The objective: what a given tree costs on a given fabric, exactly (spec: beyond 1 to 3).
//
//   start(i)   = max(arrival(i), start(i-1) + max(theta + S*gamma, S / B_port(i)))   i-th to arrive
//   done(v)    = start(last) + theta + S*gamma; 0 for a leaf: its own data costs nothing
//   arrival(c) = done(c) + phi(S) + sum of (l + w(u)) over the route c -> parent + S / B_min;
//                done(c) + same_host_us within a host
//   w(u)       = (MTU / B) * u / (2 (1 - u)), u capped at 0.99
//
// Packets that arrive together are taken in order of node number. Downwards a node sends its copies
// one after another in order of node number: copy i leaves c_send after its start and the next one
// starts max(c_send, S / B_port(i)) after it; then phi(S), the links and S / B_min, or
// same_host_us. phi is that of the node that forwards (child upwards, parent downwards), S / B_min
// is left out where the profile's phi contains it, and B_port(i) is the capacity of the node's own
// port that packet i enters or copy i leaves by; on its wire a packet is S and header_bytes long.
// Packets of different edges that share a link wait for each other at nodes only;
// contended_metrics.h knows the links' queues.
//
// A payload longer than one packet is pipelined, each packet on the heels of the one before:
//
//   packet 0   leaf ==phi==links==> root ==links==> leaf        T(first packet)
//   packet 1       ########                                     one slowest stage later
//   packet 2               ########                             and one more
//
// A stage is what one packet of everybody costs one resource that takes packets one by one:
//
//   node up     sum over its children of max(theta + S*gamma, S / B_port)
//   node down   sum over its children of max(c_send, S / B_port)
//   edge        S / B_min each way
//   NIC port    S / B_port of all that enter it, or leave it, in both directions of the tree
//
// Where as many packets go down as come up, packet i goes down as soon as the root has reduced it:
// both directions are under way at once, and the slowest stage of all counts once. Else the result
// leaves when everything is reduced: each direction has its own packets and slowest stage, and the
// port is no stage of its own (its packets of one direction are in the node's). phi is latency: a
// node stores and forwards as many packets at a time as come. What packets do to each other beyond
// that is what contended_metrics.h follows them for.
#ifndef COPPICE_DAEMON_TREE_TREE_METRICS_H_
#define COPPICE_DAEMON_TREE_TREE_METRICS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_spec.h"

namespace coppice {

// What the edge from each node to its parent crosses, found once per tree and used for every size.
struct EdgeCost {
  uint32_t links_up = 0, links_down = 0;   // edge length each way; 0 at the root and within a host
  float time_up_us = 0, time_down_us = 0;  // sum of l + w(u), or same_host_us
  float min_gbps_up = 0, min_gbps_down = 0;  // least capacity on the route; 0 within a host
  // Capacity of the parent's port that the route up enters by, and the route down leaves by; a link
  // of unknown capacity counts as the profile's port. 0 within a host or if that is unknown, too.
  float port_gbps_up = 0, port_gbps_down = 0;
};

struct Prediction {
  double aggregate_us = 0;
  double distribute_us = 0;
  double total_us = 0;  // init + aggregate + distribute
};

// Walks the routes of one edge both ways, with `path` as scratch space. NOT_FOUND: there is none
// (names both ends).
absl::Status WalkEdge(const Snapshot& snapshot, const CostProfile& profile, VertexIndex child,
                      VertexIndex parent, std::vector<ChannelIndex>& path, EdgeCost& edge);

// The costs of every edge, by walking its route or by hops alone (even_routes.h). NOT_FOUND: an
// edge without a route (names both ends).
absl::StatusOr<std::vector<EdgeCost>> EdgeCosts(const Snapshot& snapshot,
                                                const CostProfile& profile,
                                                const AggregationTree& tree);

// The same into `edges`, with `path` as scratch space: a planner that compares many trees of one
// communicator allocates once. After an error the contents of both are unspecified.
absl::Status EdgeCosts(const Snapshot& snapshot, const CostProfile& profile,
                       const AggregationTree& tree, std::vector<ChannelIndex>& path,
                       std::vector<EdgeCost>& edges);

// Slowest stages, per packet.
struct Stages {
  double up_us = 0, down_us = 0;
  double port_us = 0;  // of both directions together; counts where they overlap
};

// How a payload is cut.
struct Pipeline {
  Payload packet;                       // the first, longest one
  uint64_t more_up = 0, more_down = 0;  // packets after it
  bool streams = false;                 // both directions are under way at once

  bool is_one_packet() const { return more_up == 0 && more_down == 0; }
  // What the packets after the first add to both directions together.
  double TotalUs(const Stages& stages) const;
  // Makes `first`, which is of the first packet, that of all.
  void AddPackets(const Stages& stages, Prediction& first) const;
};

// mtu_bytes = 0 counts as no limit. O(1).
Pipeline PipelineOf(const CostProfile& profile, const Payload& payload);

// The slowest stages of a tree for `packet`, each edge's wires and each NIC's port for themselves:
// where edges share links, contended_metrics.h knows slower ones. O(nodes).
Stages SlowestStages(const CostProfile& profile, const AggregationTree& tree,
                     absl::Span<const EdgeCost> edges, const Payload& packet);

// What is never exceeded.
inline constexpr double kNoCutoff = std::numeric_limits<double>::infinity();

// O(nodes log width). `tree` is a tree (tree.h), `edges` as EdgeCosts gives them.
Prediction Evaluate(const CostProfile& profile, const AggregationTree& tree,
                    absl::Span<const EdgeCost> edges, const Payload& payload);

// Weighted mean of `predict`(payload) over a mix of sizes, which is not empty.
template <class Predictor>
Prediction MeanOver(const CollectiveMix& mix, const Predictor& predict) {
  Prediction mean;
  ForEachPayload(mix, [&](const Payload& payload, double weight) {
    const Prediction one = predict(payload);
    mean.aggregate_us += weight * one.aggregate_us;
    mean.distribute_us += weight * one.distribute_us;
    mean.total_us += weight * one.total_us;
  });
  return mean;
}

// The mean of Evaluate over a mix. A total that exceeds `cutoff_us` may be less than it could be.
Prediction EvaluateMix(const CostProfile& profile, const AggregationTree& tree,
                       absl::Span<const EdgeCost> edges, const CollectiveMix& mix,
                       double cutoff_us = kNoCutoff);

// Largest sum of edge lengths from a leaf to the root (definition 4).
uint32_t Radius(const AggregationTree& tree, absl::Span<const EdgeCost> edges);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TREE_METRICS_H_
