// The planner: from a communicator and a snapshot to one tree with its reason. A function of
// values: no I/O, no clock, no hidden state, so coppice-plan on a file decides what the daemon
// decides.
#ifndef COPPICE_DAEMON_TREE_PLANNER_H_
#define COPPICE_DAEMON_TREE_PLANNER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/collective.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/link_use.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_metrics.h"

namespace coppice {

// What one switch can do for type II trees, and what is left of it.
struct SwitchCapacity {
  uint32_t entries_total = 0;  // 0: cannot aggregate, only forward
  uint32_t entries_free = 0;
  uint32_t degree_limit = 0;  // K(v), most children in one tree
};

// What to give up for what: of the trees that none beats in time, entries and busiest link, and
// that are within the limits, the one with the least weighted sum (trade_front.h).
struct TradePolicy {
  double latency = 0, entries = 0, link_load = 0;  // weights
  std::optional<uint32_t> max_entries = std::nullopt;
  double max_busiest_link_us = 0;  // 0: no limit
};

struct TreeRequest {
  std::vector<EndpointIndex> members;  // rank order
  Operation operation = Operation::kAllreduce;
  std::vector<SizeShare> sizes = {{8, 1}};  // never empty
  std::optional<TreeType> type;             // nullopt: auto
  std::optional<TreeBuilder> builder;       // nullopt: auto; type I only
  std::optional<uint32_t> width;            // wanted k, type I
  std::optional<uint32_t> nic_degree;       // nullopt: the profile's
  std::optional<SwitchIndex> root;          // wanted root, type II
  std::optional<TradePolicy> policy;        // nullopt: the faster type, type II by minimum cost
  bool list_tradeoffs = false;              // fill TreePlan::tradeoffs
};

// Why one candidate was not taken.
struct Alternative {
  TreeType type = TreeType::kTypeI;
  TreeBuilder builder = TreeBuilder::kKary;
  uint32_t width = 0;
  std::optional<double> total_us;  // nullopt: not built; why_not says why, or its least time
  std::string why_not;
};

// One tree that no other was found to beat in all three figures.
struct Tradeoff {
  TreeType type = TreeType::kTypeI;
  TreeBuilder builder = TreeBuilder::kKary;
  uint32_t width = 0;
  double total_us = 0;
  uint32_t entries = 0;
  double busiest_link_us = 0;
  uint32_t busiest_link_packets = 0;
  bool chosen = false;  // by the policy
};

// A switch that a type II tree needed but that had no free entry or cannot aggregate.
struct FullSwitch {
  SwitchIndex index;
  uint32_t entries_total = 0;
};

struct TreePlan {
  AggregationTree tree;
  std::vector<EdgeCost> edges;           // [node]
  std::optional<PhysicalTree> physical;  // type II
  Prediction predicted;  // with links' queues, where they matter (contended_metrics.h)
  uint32_t height = 0;
  uint32_t radius = 0;
  std::vector<Alternative> alternatives;
  std::vector<FullSwitch> full_switches;  // that kept type II away, or made it dearer
  std::vector<Tradeoff> tradeoffs;        // if asked for, by time
  std::string reason;                     // one or two sentences for a person
  std::vector<ChannelUse> uses;           // by channel; MeasureLinks fills these two
  BusiestLink busiest;
};

// `capacity` is [switch_count]. Errors: INVALID_ARGUMENT (no members, an endpoint out of range,
// width or degree out of range, a builder that does not fit the type); FAILED_PRECONDITION (members
// in different components or without a route: names two of them); RESOURCE_EXHAUSTED (type II was
// demanded and no candidate root works: names the full switches; or no width respects the NICs'
// degree limit). With a policy also as CheckPolicy and ChooseByPolicy (trade_front.h).
absl::StatusOr<TreePlan> PlanTree(const Snapshot& snapshot, const CostProfile& profile,
                                  absl::Span<const SwitchCapacity> capacity,
                                  const TreeRequest& request);

// Fills `uses` and `busiest` of a plan that PlanTree made of the same. Walks the route of every
// edge both ways, which PlanTree itself mostly need not do. NOT_FOUND: an edge without a route.
absl::Status MeasureLinks(const Snapshot& snapshot, const CostProfile& profile,
                          const TreeRequest& request, LinkUseCounter& counter, TreePlan& plan);

// The words of a plan: why this type, with both figures; which switches were full.

// "3.40 us for type I (hierarchical, k = 32)", "2.31 us for type II (9 switches)"; `is_fewest`: "(9
// switches, the fewest)", where more switches could serve.
std::string Figure(const AggregationTree& tree, const Prediction& predicted,
                   bool is_fewest = false);

// Up to eight switches as `0002c9020040b0e0 "leaf3" (16 entries)`, then "and 3 more".
std::string NameSwitches(const Fabric& fabric, absl::Span<const FullSwitch> switches);

// "; 2 full switches made type II dearer: ..." or "".
std::string DearerBecause(const Fabric& fabric, absl::Span<const FullSwitch> switches);

// Type II was demanded and there is none: RESOURCE_EXHAUSTED that names the full switches, or
// FAILED_PRECONDITION if the members' routes are what is wrong.
absl::Status RefuseType2(const Fabric& fabric, std::string_view why_not, bool routes_are_wrong,
                         absl::Span<const FullSwitch> full_switches);

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_PLANNER_H_
