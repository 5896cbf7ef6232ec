// The orders that Chen 2024 measured, in the simulator: figures 12, 13 and 18, table 4, and the
// three-level tree. How much lies between them: tests/benchmark/simulation_benchmark.cc.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "daemon/tree/planner.h"
#include "daemon/tree/type1.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"
#include "tests/support/trees.h"
#include "tests/unit/simulation/simulated_cases.h"

namespace coppice::paper_order_test {
namespace {

constexpr uint32_t kWidth = 32;
constexpr uint32_t kPaperHeader = 256;  // with which table 4's figures come out

// Noise of 80 % on the links between switches.
Snapshot Noisy(Snapshot snapshot) {
  const Fabric& fabric = *snapshot.fabric;
  std::vector<float> load(fabric.channel_count(), 0.0F);
  for (uint32_t c = 0; c < fabric.channel_count(); ++c) {
    const ChannelIndex channel(c);
    if (fabric.IsSwitch(fabric.channel_from(channel)) &&
        fabric.IsSwitch(fabric.channel_to(channel))) {
      load[c] = 0.8F;
    }
  }
  snapshot.load = std::make_shared<const LinkLoad>(load);
  return snapshot;
}

double MedianUs(const Snapshot& snapshot, const AggregationTree& tree, uint64_t bytes, int runs,
                std::optional<uint32_t> header_bytes = std::nullopt) {
  std::vector<double> us;
  for (int run = 0; run < runs; ++run) {
    us.push_back(
        Simulated(snapshot, *BuiltInProfile("paper"),
                  {{.tree = tree, .payload = PayloadOf(Operation::kBcast, bytes), .skew_us = {}}},
                  {.header_bytes = header_bytes}, run)
            .collectives[0]
            .total_us);
  }
  std::sort(us.begin(), us.end());
  return us[us.size() / 2];
}

// 32-ary, 32-nomial, hierarchical.
std::vector<AggregationTree> ThreeTrees(const Snapshot& snapshot,
                                        const std::vector<EndpointIndex>& members,
                                        uint32_t degree) {
  return {*BuildKary(*snapshot.fabric, members, kWidth, degree),
          *BuildKnomial(*snapshot.fabric, members, kWidth, degree),
          *BuildHierarchical(*snapshot.fabric, *snapshot.hierarchy, members, kWidth, degree)};
}

// Two processes on each of 256 hosts of two ports, placed round by round over the hosts.
TEST(PaperOrder, HierarchicalIsLeastInTheStandardFatTree) {
  const Snapshot snapshot = SnapshotOfModel(
      "model:fat-tree(leaves=32,spines=16,hosts-per-leaf=8,ports-per-host=2,speeds=edr)");
  std::vector<EndpointIndex> members;
  for (uint32_t r = 0; r < 512; ++r) members.emplace_back(2 * (r % 256) + r / 256);
  const auto trees = ThreeTrees(snapshot, members, 64);
  for (const uint64_t bytes : {8, 64, 512, 2048}) {
    const double hierarchical = MedianUs(snapshot, trees[2], bytes, 1);
    EXPECT_LT(hierarchical, MedianUs(snapshot, trees[0], bytes, 1)) << bytes;
    EXPECT_LT(hierarchical, MedianUs(snapshot, trees[1], bytes, 1)) << bytes;
  }
}

TEST(PaperOrder, HierarchicalIsLeastUnderNoiseInThePrunedFatTree) {
  const Snapshot snapshot = Noisy(SnapshotOfModel(
      "model:fat-tree(leaves=32,spines=1,hosts-per-leaf=8,ports-per-host=2,speeds=edr)"));
  for (uint32_t ranks = 64; ranks <= 512; ranks *= 2) {
    std::vector<EndpointIndex> members = AllEndpoints(*snapshot.fabric);
    members.resize(ranks);
    const auto trees = ThreeTrees(snapshot, members, 64);
    const double hierarchical = MedianUs(snapshot, trees[2], 8, 15, kPaperHeader);
    EXPECT_LT(hierarchical, MedianUs(snapshot, trees[0], 8, 15, kPaperHeader)) << ranks;
    EXPECT_LT(hierarchical, 0.85 * MedianUs(snapshot, trees[1], 8, 15, kPaperHeader)) << ranks;
  }
}

TEST(PaperOrder, HierarchicalThenKnomialThenKaryOnThreeLevels) {
  const Snapshot snapshot = Noisy(SnapshotOfModel(
      "model:fat-tree(supernodes=8,leaves=32,spines=16,tops=4,hosts-per-leaf=8,ports-per-host=2,"
      "speeds=edr)"));
  for (uint32_t ranks = 1024; ranks <= (FullTier() ? 4096 : 1024); ranks *= 2) {
    std::vector<EndpointIndex> members = AllEndpoints(*snapshot.fabric);
    members.resize(ranks);
    const auto trees = ThreeTrees(snapshot, members, 128);
    const double knomial = MedianUs(snapshot, trees[1], 8, 15, kPaperHeader);
    EXPECT_LT(MedianUs(snapshot, trees[2], 8, 15, kPaperHeader), knomial) << ranks;
    EXPECT_LT(knomial, MedianUs(snapshot, trees[0], 8, 15, kPaperHeader)) << ranks;
  }
}

TEST(PaperOrder, TypeIIIsBelowTheSixtyFourAryTree) {
  const Snapshot snapshot =
      SnapshotOfModel("model:fat-tree(leaves=32,spines=16,hosts-per-leaf=16,speeds=edr)");
  const std::vector<SwitchCapacity> capacity(snapshot.fabric->switch_count(), {16, 16, 64});
  for (const uint32_t ranks : {64U, 512U}) {
    TreeRequest request;
    request.members = AllEndpoints(*snapshot.fabric);
    request.members.resize(ranks);
    request.operation = Operation::kBcast;
    request.type = TreeType::kTypeII;
    const auto plan = PlanTree(snapshot, *BuiltInProfile("paper"), capacity, request);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const auto kary = BuildKary(*snapshot.fabric, request.members, 64, 64);
    ASSERT_TRUE(kary.ok());
    for (const uint64_t bytes : {8, 2048}) {
      EXPECT_LT(MedianUs(snapshot, plan->tree, bytes, 1), MedianUs(snapshot, *kary, bytes, 1));
    }
  }
}

}  // namespace
}  // namespace coppice::paper_order_test
