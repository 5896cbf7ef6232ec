// One collective on a tree, event by event from a queue: the independent judge of Evaluate().
// Written from the definitions; shares no code with tree_metrics.cc and keeps no order of nodes.
// Of a long message the first packet is simulated; those after it come one slowest stage later
// each, which is looked for among everything that takes packets one by one.
#ifndef COPPICE_TESTS_UNIT_TREE_EVENT_SIMULATION_H_
#define COPPICE_TESTS_UNIT_TREE_EVENT_SIMULATION_H_

#include "absl/types/span.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_metrics.h"
#include "daemon/tree/tree_spec.h"

namespace coppice {

Prediction Simulate(const CostProfile& profile, const AggregationTree& tree,
                    absl::Span<const EdgeCost> edges, const Payload& payload);

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_TREE_EVENT_SIMULATION_H_
