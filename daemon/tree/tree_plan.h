// Values that go into the planner and come out of it, for who makes or reads them without planning
// himself.
#ifndef COPPICE_DAEMON_TREE_TREE_PLAN_H_
#define COPPICE_DAEMON_TREE_TREE_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/fabric/fabric.h"
#include "daemon/tree/link_use.h"
#include "daemon/tree/tree.h"
#include "daemon/tree/tree_metrics.h"
#include "daemon/tree/tree_spec.h"

namespace coppice {

// What one switch can do for type II trees, and what is left of it.
struct SwitchCapacity {
  uint32_t entries_total = 0;  // 0: cannot aggregate, only forward
  uint32_t entries_free = 0;
  uint32_t degree_limit = 0;  // K(v), most children in one tree
  bool speaks = false;        // so that members can use its entries (Switches.Connect)
  bool is_barred = false;     // it may not serve who asks, which is not to be full
};

// The spec on one snapshot. The planner wants its sizes never empty.
struct TreeRequest : TreeSpec {
  TreeRequest() { sizes = {{8, 1}}; }
  std::vector<EndpointIndex> members;  // rank order
  std::vector<uint32_t> leaf_ranks;    // ascending: positions of members that serve no children
};

// What the searches for a tree are given. Roots and cables are chosen by the load of `snapshot`,
// times are predicted with that of `predicting` (link_use.h). `capacity` is [switch_count];
// `request` is valid, its members are at `places` and reach each other. All must outlive the
// search.
struct PlanInput {
  const Snapshot& snapshot;
  const Snapshot& predicting;
  const CostProfile& profile;
  absl::Span<const SwitchCapacity> capacity;
  const TreeRequest& request;
  const MemberPlaces& places;
};

struct TradeFigures {
  double total_us = 0;
  uint32_t entries = 0;
  double busiest_link_us = 0;
  uint32_t busiest_link_packets = 0;  // not compared
};

// One tree that no other was found to beat in the first three figures.
struct Tradeoff : TradeFigures {
  TreeType type = TreeType::kTypeI;
  TreeBuilder builder = TreeBuilder::kKary;
  uint32_t width = 0;
  bool chosen = false;  // by the policy
};

// A switch that a type II tree needed but that had no free entry or cannot aggregate.
struct FullSwitch {
  SwitchIndex index;
  uint32_t entries_total = 0;
  bool is_barred = false;  // SwitchCapacity's
};

// A tree and how long it takes.
struct TimedTree {
  AggregationTree tree;
  std::vector<EdgeCost> edges;                   // [node]
  std::shared_ptr<const PhysicalTree> physical;  // type II; else null
  Prediction predicted;  // with links' queues, where they matter (contended_metrics.h)
};

struct TreePlan : TimedTree {
  uint32_t height = 0;
  uint32_t radius = 0;
  std::vector<Alternative> alternatives;
  std::vector<FullSwitch> full_switches;  // that kept type II away, or made it dearer
  std::vector<Tradeoff> tradeoffs;        // if asked for, by time
  std::string reason;                     // one or two sentences for a person
  std::vector<ChannelUse> uses;           // by channel; MeasureLinks fills these two
  BusiestLink busiest;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_TREE_PLAN_H_
