// A forest: trees over the same ranks that share one long message, because one tree cannot fill the
// links. Each share is reduced to its tree's root and broadcast from it, all at once:
//
//   rank      0 1 2 3 4 5 6 7
//   tree a    R i i . . . . .     one tree: rank 0 receives from all of its children and sends to
//   tree b    . . . R i i . .     them, while the port of rank 7 is nearly idle
//   ...                           two: who is an inner node of one is a leaf of the other, and
//                                 each port sends and receives about 2 M in all
//
// With as many trees as ranks, each rank the root of one, that is reduce-scatter and allgather.
// Zhao et al., "ForestColl" (2024), packs such trees on cables; here they are packed on the routes
// that packets really take. Functions of values: no I/O, no clock, ties by index.
#ifndef COPPICE_DAEMON_TREE_FOREST_FOREST_H_
#define COPPICE_DAEMON_TREE_FOREST_FOREST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/fabric/snapshot.h"
#include "daemon/tree/cost_profile.h"
#include "daemon/tree/tree_plan.h"

namespace coppice {

// Which hosts are inner nodes of a tree.
enum class InnerHosts : uint8_t { kInTurn, kOneALeaf, kAll, kHalves };

// How a forest's trees are made (shapes.h).
struct ForestShape {
  uint32_t trees = 1;  // K; 0: none of these shapes, but the planner's one tree
  InnerHosts inner = InnerHosts::kInTurn;
  uint32_t fanout = 1;      // inner children of an inner node; 1 of kHalves
  bool by_group = false;    // inner nodes join within groups first
  bool host_chain = false;  // the ranks of one host are a chain; else all hang on one of them
  friend bool operator==(const ForestShape&, const ForestShape&) = default;
};

// "16 trees with an inner node on every leaf switch, fan-out 4, joined group by group".
std::string ToString(const ForestShape& shape);

struct ForestTree {
  AggregationTree tree;  // type I
  double share = 1;      // of the message; those of a forest add up to 1
};

struct ForestCandidate {
  ForestShape shape;
  double busiest_us = 0;           // of what it keeps busy longest
  std::optional<double> total_us;  // nullopt: not followed packet by packet
};

struct ForestPlan {
  std::vector<ForestTree> trees;
  ForestShape shape;
  double total_us = 0;  // predicted, init included; the mean over a mix of sizes
  // What one collective keeps busy longest; of a mix, the mean. `packets` are messages, of all
  // trees.
  BusiestLink busiest;
  std::vector<ForestCandidate>
      candidates;  // all that were built, the chosen one first, then by time
  std::string reason;
};

// Above, plans would take minutes and their routes more memory than the fabric.
inline constexpr uint32_t kMaxForestRanks = 1024;

// At least one and at most `max_trees` trees for Allreduces of the request's sizes. What is chosen
// from: shapes (shapes.h) that keep the NICs' degree in each tree, and the one tree of type I that
// PlanTree gives, with the request's width and builder, which a forest knows not. All are laid on
// their routes; in order of what they
// are likely to take they are followed packet by packet, the quickest of them once more and
// farther; the quickest is taken.
//
// INVALID_ARGUMENT: no members, or more than kMaxForestRanks; no Allreduce; type II or a policy;
// max_trees 0 or above kMaxTrees; else the errors of PlanTree.
absl::Status CheckForestRequest(const TreeRequest& request, uint32_t max_trees);
absl::StatusOr<ForestPlan> PlanForest(const Snapshot& snapshot, const CostProfile& profile,
                                      const TreeRequest& request, uint32_t max_trees);

// Crossings of channels by packets that are followed: of all candidates together, of one of them,
// and of one that is followed again. A million takes about 0.2 s.
inline constexpr uint64_t kMaxHopsFollowed = 16'000'000;
inline constexpr uint64_t kMaxHopsOfOne = 600'000, kMaxHopsAgain = 2'000'000;

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_FOREST_FOREST_H_
