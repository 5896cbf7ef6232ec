// Chen 2024, figure 16: packets towards the root on one link of the pruned fat tree, 512 ranks, 16
// on each of 32 leaf switches, k = 32. The paper states 496 (32-ary), 16 (32-nomial) and up to 31
// (hierarchical); its drawing is lost. No wiring gives all three at once, whatever its routes,
// as long as a packet's way depends on its two ends:
//
//   - Both trees hold the edges 1 -> 0, 2 -> 0, ..., 32 -> 0.
//   - A link with 496 of the 511 packets of the 32-ary tree misses only 15 of them, so that at
//   least
//     17 of those 32 edges cross it; and they do so in the 32-nomial tree, too.
//
// What wirings give (largest over links between switches; see the tests):
//
//   one uplink a leaf to one top        496  31  31   figure 14's words: "the ports of one switch
//                                                      share one link to other switches"; all links
//                                                      of the 32-nomial carry at most 16 but one,
//                                                      the link down to the root's leaf
//   every two leaves joined              16  16   1   figure 16's words: "packets between the two
//                                                      switches that a line connects"
//   neighbours joined, and a top        480  16  30   both at once
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "daemon/tree/type1.h"
#include "gtest/gtest.h"
#include "tests/unit/simulation/simulated_cases.h"

namespace coppice {
namespace {

constexpr uint32_t kLeaves = 32, kPortsPerLeaf = 16, kWidth = 32, kDegree = 64;

struct Trees {
  AggregationTree kary, knomial, hierarchical;
};

Trees TreesOn(const Snapshot& snapshot) {
  const std::vector<EndpointIndex> members = AllEndpoints(*snapshot.fabric);
  return {*BuildKary(*snapshot.fabric, members, kWidth, kDegree),
          *BuildKnomial(*snapshot.fabric, members, kWidth, kDegree),
          *BuildHierarchical(*snapshot.fabric, *snapshot.hierarchy, members, kWidth, kDegree)};
}

// Packets towards the root on each link between switches that carries any: load -> links.
std::map<uint64_t, uint32_t, std::greater<>> LinkLoads(const Snapshot& snapshot,
                                                       const AggregationTree& tree) {
  const SimulationResult result =
      Simulated(snapshot, RoundProfile(),
                {{.tree = tree, .payload = PayloadOf(Operation::kReduce, 8), .skew_us = {}}});
  std::map<uint64_t, uint32_t, std::greater<>> loads;
  for (const ChannelUse& use : result.channels) {
    const Fabric& fabric = *snapshot.fabric;
    if (use.up_packets == 0 || !fabric.IsSwitch(fabric.channel_from(use.channel)) ||
        !fabric.IsSwitch(fabric.channel_to(use.channel))) {
      continue;
    }
    ++loads[use.up_packets];
  }
  return loads;
}

using Loads = std::map<uint64_t, uint32_t, std::greater<>>;

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

TEST(PrunedFatTree, NoWiringGivesAllThreeNumbersOfThePaper) {
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
}  // namespace coppice
