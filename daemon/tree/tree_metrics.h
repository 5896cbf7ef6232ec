// The objective: what a given tree costs on a given fabric, exactly (spec: beyond 1 and 2).
//
//   done(v)    = when v has processed its own data (cost 0) and its children's packets, one at a
//                time in order of arrival, ties by node number, each theta + S*gamma
//   arrival(c) = done(c) + phi(S) + sum of (l + w(u)) over the route c -> parent + S / B_min
//   w(u)       = (MTU / B) * u / (2 (1 - u)), u capped at 0.99
//
// The same walk downwards gives the distribution, a node sending its copies one after another in
// order of node number. A payload longer than one packet is one packet here (issue 2 pipelines it).
#ifndef COPPICE_DAEMON_TREE_TREE_METRICS_H_
#define COPPICE_DAEMON_TREE_TREE_METRICS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/collective.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree.h"

namespace coppice {

// What the edge from each node to its parent crosses, found once per tree and used for every size.
struct EdgeCost {
  uint32_t links_up = 0, links_down = 0;  // edge length each way; 0 at the root and within a host
  float time_up_us = 0, time_down_us = 0; // sum of l + w(u), or same_host_us
  float min_gbps_up = 0, min_gbps_down = 0;  // least capacity on the route; 0 within a host
};

struct Prediction {
  double aggregate_us = 0;
  double distribute_us = 0;
  double total_us = 0;  // init + aggregate + distribute
};

// Walks the route of every edge. Errors: NOT_FOUND, an edge without a route (names both ends).
absl::StatusOr<std::vector<EdgeCost>> EdgeCosts(const Snapshot& snapshot,
                                                const CostProfile& profile,
                                                const AggregationTree& tree);

// O(nodes log width). `edges` as EdgeCosts gives them.
Prediction Evaluate(const CostProfile& profile, const AggregationTree& tree,
                    absl::Span<const EdgeCost> edges, const Payload& payload);

// Weighted mean over a mix of sizes.
Prediction EvaluateMix(const CostProfile& profile, const AggregationTree& tree,
                       absl::Span<const EdgeCost> edges, Operation operation,
                       absl::Span<const SizeShare> sizes);

// Largest sum of edge lengths from a leaf to the root (definition 4).
uint32_t Radius(const AggregationTree& tree, absl::Span<const EdgeCost> edges);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TREE_METRICS_H_
