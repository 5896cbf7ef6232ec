// Auto of type I against the exhaustive loop: every builder at every width of the interval, each
// planned by itself; and flat groups against the arrangement that they foretell.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "daemon/fabric/fabric_source.h"
#include "daemon/tree/flat_groups.h"
#include "daemon/tree/group_slots.h"
#include "daemon/tree/planner.h"
#include "daemon/tree/type1_hierarchical.h"
#include "daemon/tree/width_candidates.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"

namespace coppice {
namespace {

std::vector<Snapshot> Fabrics() {
  std::vector<Snapshot> snapshots;
  for (const char* spec : {"model:fat-tree(leaves=32,spines=16,hosts-per-leaf=16)",
                           "model:fat-tree(leaves=6,spines=3,hosts-per-leaf=5)",
                           "model:fat-tree(supernodes=3,leaves=4,spines=2,hosts-per-leaf=4,tops=2)",
                           "model:torus(dims=3x4x2,hosts=2)"}) {
    const auto fabric = LoadFabric(spec);
    EXPECT_TRUE(fabric.ok()) << fabric.status();
    if (fabric.ok()) snapshots.push_back(**MakeSnapshot(*fabric, nullptr));
  }
  return snapshots;
}

TreeRequest RandomRequest(const Fabric& fabric, std::mt19937_64& random) {
  TreeRequest request;
  request.type = TreeType::kTypeI;
  const uint64_t ranks = 1 + random() % (random() % 4 == 0 ? 200 : 40);
  for (uint64_t rank = 0; rank < ranks; ++rank) {
    request.members.emplace_back(static_cast<uint32_t>(random() % fabric.endpoint_count()));
  }
  request.operation = static_cast<Operation>(random() % 4);
  request.sizes.clear();
  for (uint64_t sizes = 1 + random() % 2; sizes > 0; --sizes) {
    request.sizes.push_back(
        {uint64_t{1} << random() % 21, 1.0 + static_cast<double>(random() % 3)});
  }
  if (random() % 3 == 0) request.nic_degree = 3 + random() % 30;
  return request;
}

TEST(Type1Choice, IsTheLeastOfEveryBuilderAtEveryWidth) {
  const std::vector<Snapshot> fabrics = Fabrics();
  std::mt19937_64 random(TestSeed() + 11);
  const uint32_t rounds = FullTier() ? 1500 : 200;
  for (uint32_t round = 0; round < rounds; ++round) {
    Snapshot snapshot = fabrics[random() % fabrics.size()];
    const Fabric& fabric = *snapshot.fabric;
    if (random() % 2 == 0) {
      LinkLoad load(fabric.channel_count());
      for (float& u : load) u = static_cast<float>(random() % 100) / 101;
      snapshot.load = std::make_shared<const LinkLoad>(load);
    }
    const CostProfile profile = *BuiltInProfile(random() % 2 == 0 ? "hdr" : "paper");
    const std::vector<SwitchCapacity> capacity(fabric.switch_count());
    const TreeRequest request = RandomRequest(fabric, random);
    const auto best = PlanTree(snapshot, profile, capacity, request);
    ASSERT_TRUE(best.ok()) << best.status();
    const WidthInterval widths =
        WidthCandidates(profile, request, request.nic_degree.value_or(profile.nic_degree));
    double least = best->predicted.total_us;
    for (const TreeBuilder builder :
         {TreeBuilder::kKary, TreeBuilder::kKnomial, TreeBuilder::kHierarchical}) {
      TreeRequest one = request;
      one.builder = builder;
      const auto default_width = PlanTree(snapshot, profile, capacity, one);
      if (default_width.ok()) least = std::min(least, default_width->predicted.total_us);
      for (uint32_t width = widths.min; width <= widths.max; ++width) {
        one.width = width;
        const auto plan = PlanTree(snapshot, profile, capacity, one);
        if (plan.ok()) least = std::min(least, plan->predicted.total_us);
      }
    }
    ASSERT_EQ(best->predicted.total_us, least) << "round " << round;
    for (const Alternative& other : best->alternatives) {
      if (other.total_us) {
        ASSERT_GE(*other.total_us, best->predicted.total_us) << "round " << round;
      }
    }
  }
}

TEST(FlatGroups, AreTheArrangement) {
  const std::vector<Snapshot> fabrics = Fabrics();
  std::mt19937_64 random(TestSeed() + 12);
  const uint32_t rounds = FullTier() ? 20'000 : 2'000;
  uint32_t flat = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    const Snapshot& snapshot = fabrics[random() % fabrics.size()];
    const TreeRequest request = RandomRequest(*snapshot.fabric, random);
    if (request.members.size() < 2) continue;
    const NestedGroups groups = GroupMembers(*snapshot.hierarchy, request.members);
    const uint32_t width = 2 + random() % 40, limit = 2 + random() % 64;
    FlatGroups found;
    if (!found.Find(groups, width, limit)) continue;
    ++flat;
    std::vector<int32_t> parents;
    found.Parents(groups, parents);
    const auto arrangement = ArrangeGroups(groups, width, limit);
    ASSERT_TRUE(arrangement.ok()) << arrangement.status();
    ASSERT_EQ(parents, arrangement->parents) << "round " << round << " k=" << width;
  }
  EXPECT_GT(flat, rounds / 10);
}

}  // namespace
}  // namespace coppice
