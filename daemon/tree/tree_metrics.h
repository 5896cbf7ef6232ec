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
// port that packet i enters or copy i leaves by; on its wire a packet is S and header_bytes long. A
// payload longer than one packet is pipelined (pipelining.h). Packets of different edges that share
// a link wait for each other at nodes only; contended_metrics.h knows the links' queues.
#ifndef COPPICE_DAEMON_TREE_TREE_METRICS_H_
#define COPPICE_DAEMON_TREE_TREE_METRICS_H_

#include <cstdint>
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

// Walks the route of every edge. Errors: NOT_FOUND, an edge without a route (names both ends).
absl::StatusOr<std::vector<EdgeCost>> EdgeCosts(const Snapshot& snapshot,
                                                const CostProfile& profile,
                                                const AggregationTree& tree);

// The same into `edges`, with `path` as scratch space: a planner that compares many trees of one
// communicator allocates once. After an error the contents of both are unspecified.
absl::Status EdgeCosts(const Snapshot& snapshot, const CostProfile& profile,
                       const AggregationTree& tree, std::vector<ChannelIndex>& path,
                       std::vector<EdgeCost>& edges);

// O(nodes log width). `tree` is a tree (tree.h), `edges` as EdgeCosts gives them.
Prediction Evaluate(const CostProfile& profile, const AggregationTree& tree,
                    absl::Span<const EdgeCost> edges, const Payload& payload);

// Weighted mean of `predict`(bytes) over a mix of sizes, which is not empty; weights are >= 0, and
// count as equal if all are 0.
template <class Predictor>
Prediction MeanOver(absl::Span<const SizeShare> sizes, const Predictor& predict) {
  double total_weight = 0;
  for (const SizeShare& share : sizes) total_weight += share.weight;
  Prediction mean;
  for (const SizeShare& share : sizes) {
    const double weight =
        total_weight > 0 ? share.weight / total_weight : 1.0 / static_cast<double>(sizes.size());
    const Prediction one = predict(share.bytes);
    mean.aggregate_us += weight * one.aggregate_us;
    mean.distribute_us += weight * one.distribute_us;
    mean.total_us += weight * one.total_us;
  }
  return mean;
}

// The mean of Evaluate over a mix.
Prediction EvaluateMix(const CostProfile& profile, const AggregationTree& tree,
                       absl::Span<const EdgeCost> edges, Operation operation,
                       absl::Span<const SizeShare> sizes);

// Largest sum of edge lengths from a leaf to the root (definition 4).
uint32_t Radius(const AggregationTree& tree, absl::Span<const EdgeCost> edges);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TREE_METRICS_H_
