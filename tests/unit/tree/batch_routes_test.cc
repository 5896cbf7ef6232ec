// Batches where the routes are fixed, where switches differ, and where links come before entries.
#include <memory>
#include <random>
#include <vector>

#include "daemon/fabric/fabric_source.h"
#include "daemon/tree/batch/baseline.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/grid.h"
#include "gtest/gtest.h"
#include "tests/support/batch_check.h"
#include "tests/support/fabrics.h"
#include "tests/support/tables.h"
#include "tests/support/tier.h"

namespace coppice::batch_routes_test {
namespace {

Snapshot SnapshotOfModel(const std::string& spec) {
  const auto fabric = LoadFabric(spec);
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  return **MakeSnapshot(*fabric, nullptr);
}

BatchPlan Planned(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity,
                  absl::Span<const BatchCommunicator> batch, const BatchOptions& options = {}) {
  auto plan = PlanBatch(snapshot, capacity, batch, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  const absl::Status check = CheckBatch(snapshot, capacity, batch, options, *plan);
  EXPECT_TRUE(check.ok()) << check;
  return *std::move(plan);
}

std::vector<SwitchCapacity> UnequalCapacity(std::mt19937_64& random, const Fabric& fabric) {
  std::vector<SwitchCapacity> capacity(fabric.switch_count());
  for (SwitchCapacity& c : capacity) {
    const auto free = static_cast<uint32_t>(random() % 4);
    const uint32_t degrees[] = {0, 3, 6, 16};
    c = {4, free, degrees[random() % 4]};
  }
  return capacity;
}

// The way of every switch of every tree is the one that its route takes.
void ExpectTreesFollow(const Snapshot& snapshot, const BatchPlan& plan) {
  for (const CommunicatorResult& result : plan.communicators) {
    if (!result.tree || result.tree->physical.switches.empty()) continue;
    const SwitchTree& tree = result.tree->physical;
    for (size_t v = 1; v < tree.switches.size(); ++v) {
      EXPECT_EQ(
          snapshot.routes->NextChannel(tree.switches[v], snapshot.fabric->Vertex(tree.root())),
          tree.up[v]);
    }
  }
}

// Rows and columns, and random groups, over tables, in dimension order and over its tables, with
// switches that differ: never worse than one by one, and on the routes.
TEST(BatchRoutesTest, FollowsTablesAndDimensionOrder) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < (FullTier() ? 200 : 16); ++round) {
    SCOPED_TRACE(round);
    const bool grid = round % 2 == 0;
    Snapshot snapshot = SnapshotOfModel(
        grid ? "model:torus(dims=4x4,hosts=2,lids=1)"
             : "model:fat-tree(supernodes=2,leaves=4,spines=2,hosts-per-leaf=4,tops=2,lids=1)");
    if (grid) snapshot.routes = *Routes::DimensionOrder(snapshot.fabric);
    if (!grid || round % 4 == 0) {
      snapshot.routes = TablesLike(*snapshot.routes, snapshot.fabric);
    }
    const auto members = AllEndpoints(*snapshot.fabric);
    const auto batch = round % 3 == 0
                           ? RandomGroups(10, 6, round, members)
                           : GridLines({{8, 4}, GridOrder::kLastAxisFastest, {}}, members);
    ASSERT_TRUE(batch.ok());
    const auto capacity = UnequalCapacity(random, *snapshot.fabric);
    const BatchPlan plan = Planned(snapshot, capacity, *batch);
    ExpectTreesFollow(snapshot, plan);
    const auto one_by_one = PlanOneByOne(snapshot, capacity, *batch, BaselineMethod::kMinimumCost);
    ASSERT_TRUE(one_by_one.ok());
    EXPECT_GE(plan.totals.admitted, one_by_one->admitted);
    if (plan.totals.admitted == one_by_one->admitted) {
      EXPECT_LE(plan.totals.entries, one_by_one->entries);
    }
  }
}

// A network without levels, where the root decides what a tree takes.
TEST(BatchRoutesTest, TakesNoMoreThanOneByOneWhereThereIsRoom) {
  const Snapshot snapshot = SnapshotOfModel("model:torus(dims=5x5,hosts=2)");
  const auto members = AllEndpoints(*snapshot.fabric);
  for (uint32_t round = 0; round < (FullTier() ? 20 : 2); ++round) {
    const auto batch = RandomGroups(12, 16, TestSeed() + round, members);
    ASSERT_TRUE(batch.ok());
    const std::vector<SwitchCapacity> capacity(snapshot.fabric->switch_count(), {64, 64, 4});
    const BatchPlan plan = Planned(snapshot, capacity, *batch);
    const auto one_by_one = PlanOneByOne(snapshot, capacity, *batch, BaselineMethod::kMinimumCost);
    ASSERT_TRUE(one_by_one.ok());
    EXPECT_GE(plan.totals.admitted, one_by_one->admitted);
    if (plan.totals.admitted == one_by_one->admitted) {
      EXPECT_LE(plan.totals.entries, one_by_one->entries);
    }
  }
}

TEST(BatchRoutesTest, SpendsEntriesOnLinksIfTheseComeFirst) {
  uint32_t unloaded = 0;
  const Snapshot snapshot =
      SnapshotOfModel("model:fat-tree(supernodes=4,leaves=4,spines=2,hosts-per-leaf=4,tops=4)");
  const auto members = AllEndpoints(*snapshot.fabric);
  for (const char* const sizes : {"8x8", "16x4", "7x9"}) {
    const auto batch =
        GridLines({*ParseGridSizes(sizes), GridOrder::kFirstAxisFastest, {}}, members);
    ASSERT_TRUE(batch.ok());
    const std::vector<SwitchCapacity> capacity(snapshot.fabric->switch_count(), {8, 8, 4});
    BatchOptions links, entries;
    links.goal = BatchGoal::kLinks;
    entries.goal = BatchGoal::kEntries;
    const BatchTotals entries_first = Planned(snapshot, capacity, *batch, entries).totals;
    const BatchTotals links_first = Planned(snapshot, capacity, *batch, links).totals;
    EXPECT_EQ(links_first.admitted, entries_first.admitted);
    EXPECT_GE(links_first.entries, entries_first.entries);
    EXPECT_LE(links_first.most_packets, entries_first.most_packets) << sizes;
    unloaded += links_first.most_packets < entries_first.most_packets ? 1 : 0;
  }
  EXPECT_GT(unloaded, 0U);
}

// Of the plans that entries are spent on one is the default's, so links never come out worse,
// however little work is allowed, nor do those admitted and farther roots.
TEST(BatchRoutesTest, LinksFirstIsNeverWorseForLinks) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < (FullTier() ? 400 : 40); ++round) {
    SCOPED_TRACE(round);
    const auto fabric = RandomFabric(random, 2 + random() % 9, random() % 20, 2 + random() % 30);
    const Snapshot snapshot = **MakeSnapshot(fabric, nullptr);
    const auto members = AllEndpoints(*fabric);
    const auto ranks = static_cast<uint32_t>(1 + random() % members.size());
    const auto batch = RandomGroups(1 + random() % 10, ranks, random(), members);
    ASSERT_TRUE(batch.ok());
    const auto capacity = UnequalCapacity(random, *fabric);
    BatchOptions options;
    options.reach = static_cast<RootReach>(random() % 3);
    if (round % 2 == 0) options.most_candidates = static_cast<uint32_t>(random() % 4);
    const BatchTotals both = Planned(snapshot, capacity, *batch, options).totals;
    options.goal = BatchGoal::kLinks;
    const BatchTotals links_first = Planned(snapshot, capacity, *batch, options).totals;
    EXPECT_EQ(links_first.admitted, both.admitted);
    EXPECT_LE(links_first.most_packets, both.most_packets);
    if (options.reach == RootReach::kAny) continue;
    EXPECT_LE(links_first.farther_roots, both.farther_roots);
  }
}

}  // namespace
}  // namespace coppice::batch_routes_test
