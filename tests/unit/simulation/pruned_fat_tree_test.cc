// Chen 2024, figure 16: packets towards the root on one link of the pruned fat tree, 512 ranks, 16
// on each of 32 leaf switches, k = 32. The paper states 496 (32-ary), 16 (32-nomial, "stays 16" as
// processes are added) and 1 growing to 31 (hierarchical); its drawing is lost. All of this holds
//
//   where   every leaf switch has one uplink, all to one top: figure 14, "the ports of one switch
//           share one link to other switches";
//   for     the packets of one step: those whose senders have equally high subtrees leave together
//           and are what competes for the link. The 32-nomial tree sends 31 packets to the root's
//           leaf switch, 16 in its first step and 15 in its second.
//
//             top
//         1 / 16 | \ ...        in a step, on the link to the root's leaf switch:
//        L0    L1    L31          496 + 0     32-ary, all in the first step
//       r0-15 r16-31              16 + 15     32-nomial
//                                 0 + 31      hierarchical, all in the second
//
// Counted over all steps together, no wiring has a link with 496 and none with more than 16 in the
// 32-nomial tree, wherever the ranks are, as long as a packet's way depends on its two ends: both
// trees hold the edges 1 -> 0, ..., 32 -> 0; a link with 496 of the 511 packets of the 32-ary tree
// misses only 15 of them, so that at least 17 of these 32 cross it in both trees. If ranks are
// placed anew for each tree, the root's 46 children need 31 packets to leave 16 ports all the same.
//
// Largest load of a link between switches over all steps, by wiring: one uplink a leaf 496 / 31 /
// 31; every two leaves joined 16 / 16 / 1; neighbours joined, and a top, 480 / 16 / 30.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "daemon/tree/type1.h"
#include "gtest/gtest.h"
#include "tests/support/trees.h"
#include "tests/unit/simulation/simulated_cases.h"

namespace coppice::pruned_fat_tree_test {
namespace {

constexpr uint32_t kLeaves = 32, kPortsPerLeaf = 16, kWidth = 32, kDegree = 64;

struct Trees {
  AggregationTree kary, knomial, hierarchical;
};

Trees TreesOn(const Snapshot& snapshot, uint32_t ranks = kLeaves * kPortsPerLeaf) {
  std::vector<EndpointIndex> members = AllEndpoints(*snapshot.fabric);
  members.resize(ranks);
  return {*BuildKary(*snapshot.fabric, members, kWidth, kDegree),
          *BuildKnomial(*snapshot.fabric, members, kWidth, kDegree),
          *BuildHierarchical(*snapshot.fabric, *snapshot.hierarchy, members, kWidth, kDegree)};
}

bool IsBetweenSwitches(const Fabric& fabric, ChannelIndex c) {
  return fabric.IsSwitch(fabric.channel_from(c)) && fabric.IsSwitch(fabric.channel_to(c));
}

using Loads = std::map<uint64_t, uint32_t, std::greater<>>;

// Packets towards the root on each link between switches that carries any: load -> links.
Loads LinkLoads(const Snapshot& snapshot, const AggregationTree& tree) {
  const SimulationResult result =
      Simulated(snapshot, RoundProfile(),
                {{.tree = tree, .payload = PayloadOf(Operation::kReduce, 8), .skew_us = {}}});
  Loads loads;
  for (const ChannelTraffic& use : result.channels) {
    if (use.up_packets == 0 || !IsBetweenSwitches(*snapshot.fabric, use.channel)) continue;
    ++loads[use.up_packets];
  }
  return loads;
}

// Height of the subtree below `node`: the step in which it sends, from 0.
uint32_t StepOf(const AggregationTree& tree, const ChildLists& children, uint32_t node) {
  uint32_t step = 0;
  for (const uint32_t child : children.of(node)) {
    step = std::max(step, StepOf(tree, children, child) + 1);
  }
  return step;
}

// Most packets of one step on one link between switches.
uint32_t MostInOneStep(const Snapshot& snapshot, const AggregationTree& tree) {
  const ChildLists children = ChildrenOf(tree.parents);
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> packets;  // channel, step
  uint32_t most = 0;
  for (uint32_t n = 0; n < tree.node_count(); ++n) {
    if (tree.parents[n] < 0) continue;
    std::vector<ChannelIndex> path;
    EXPECT_TRUE(
        snapshot.routes->Append(tree.vertices[n], tree.vertices[tree.parents[n]], path).ok());
    for (const ChannelIndex c : path) {
      if (!IsBetweenSwitches(*snapshot.fabric, c)) continue;
      most = std::max(most, ++packets[{c.value(), StepOf(tree, children, n)}]);
    }
  }
  return most;
}

TEST(PrunedFatTree, PacketsOfOneStepAreThoseOfThePaper) {
  // Hosts of one port, and of two as in the paper: the ports are the same ones.
  for (const uint32_t ports : {1, 2}) {
    const Snapshot snapshot = SnapshotOf(TwoLevelFatTree(kLeaves, 1, kPortsPerLeaf / ports, ports));
    for (uint32_t ranks = 32; ranks <= 512; ranks *= 2) {
      const Trees trees = TreesOn(snapshot, ranks);
      EXPECT_EQ(MostInOneStep(snapshot, trees.kary), ranks - 16);
      EXPECT_EQ(MostInOneStep(snapshot, trees.knomial), 16);
      EXPECT_EQ(MostInOneStep(snapshot, trees.hierarchical), ranks / 16 - 1);
    }
  }
}

TEST(PrunedFatTree, OneUplinkALeaf) {
  const Snapshot snapshot = SnapshotOf(TwoLevelFatTree(kLeaves, 1, kPortsPerLeaf));
  const Trees trees = TreesOn(snapshot);
  EXPECT_EQ(LinkLoads(snapshot, trees.kary), (Loads{{496, 1}, {16, 31}}));
  // Odd leaves send 16 up, even ones 1 but the root's; down go 16 to each even leaf, 31 to the
  // root's.
  EXPECT_EQ(LinkLoads(snapshot, trees.knomial), (Loads{{31, 1}, {16, 31}, {1, 15}}));
  EXPECT_EQ(LinkLoads(snapshot, trees.hierarchical), (Loads{{31, 1}, {1, 31}}));
}

TEST(PrunedFatTree, EveryTwoLeavesJoined) {
  FabricPlan plan = TwoLevelFatTreePlan(kLeaves, 0, kPortsPerLeaf);
  for (uint32_t a = 0; a < kLeaves; ++a) {
    for (uint32_t b = a + 1; b < kLeaves; ++b) plan.cables.emplace_back(a, b);
  }
  const Snapshot snapshot = SnapshotOf(MakeFabric(plan));
  const Trees trees = TreesOn(snapshot);
  EXPECT_EQ(LinkLoads(snapshot, trees.kary), (Loads{{16, 31}}));
  EXPECT_EQ(LinkLoads(snapshot, trees.knomial), (Loads{{16, 16}, {1, 15}}));
  EXPECT_EQ(LinkLoads(snapshot, trees.hierarchical), (Loads{{1, 31}}));
}

TEST(PrunedFatTree, NeighboursJoinedAndATop) {
  FabricPlan plan = TwoLevelFatTreePlan(kLeaves, 1, kPortsPerLeaf);
  for (uint32_t leaf = 0; leaf < kLeaves; leaf += 2) plan.cables.emplace_back(leaf, leaf + 1);
  const Snapshot snapshot = SnapshotOf(MakeFabric(plan));
  const std::vector<EndpointIndex> members = AllEndpoints(*snapshot.fabric);
  EXPECT_EQ(LinkLoads(snapshot, *BuildKary(*snapshot.fabric, members, kWidth, kDegree)),
            (Loads{{480, 1}, {16, 31}}));
  EXPECT_EQ(LinkLoads(snapshot, *BuildKnomial(*snapshot.fabric, members, kWidth, kDegree)),
            (Loads{{16, 16}, {15, 1}, {1, 15}}));
  // The tree of one uplink a leaf: the neighbours' links do not change who is with whom.
  const Snapshot star = SnapshotOf(TwoLevelFatTree(kLeaves, 1, kPortsPerLeaf));
  EXPECT_EQ(LinkLoads(snapshot, TreesOn(star).hierarchical), (Loads{{30, 1}, {1, 31}}));
}

TEST(PrunedFatTree, NoWiringGivesAllThreeOverAllStepsTogether) {
  const Trees trees = TreesOn(SnapshotOf(TwoLevelFatTree(kLeaves, 1, kPortsPerLeaf)));
  const auto edges = [](const AggregationTree& tree) {
    std::set<std::pair<uint32_t, int32_t>> all;
    for (uint32_t r = 0; r < tree.rank_count; ++r) {
      if (tree.parents[r] >= 0) all.emplace(r, tree.parents[r]);
    }
    return all;
  };
  const auto kary = edges(trees.kary), knomial = edges(trees.knomial);
  std::vector<std::pair<uint32_t, int32_t>> shared;
  std::set_intersection(kary.begin(), kary.end(), knomial.begin(), knomial.end(),
                        std::back_inserter(shared));
  EXPECT_EQ(kary.size(), 511);
  EXPECT_EQ(shared.size(), 32);
  const size_t missed = kary.size() - 496;
  EXPECT_GT(shared.size() - missed, 16);  // on the link with 496, in the 32-nomial tree
}

}  // namespace
}  // namespace coppice::pruned_fat_tree_test
