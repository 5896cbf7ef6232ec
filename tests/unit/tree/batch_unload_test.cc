// What BatchGoal::kBoth makes of links: never worse than entries first, never more than a twentieth
// dearer, and as even as counting allows where the fabric is regular.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/fabric/fabric_source.h"
#include "daemon/tree/batch/baseline.h"
#include "daemon/tree/batch/batch.h"
#include "daemon/tree/batch/grid.h"
#include "daemon/tree/batch/repair.h"
#include "daemon/tree/batch/reroute.h"
#include "gtest/gtest.h"
#include "tests/support/batch_check.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"
#include "tests/unit/tree/batch_oracle.h"

namespace coppice::batch_unload_test {
namespace {

BatchTotals TotalsFor(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity,
                      absl::Span<const BatchCommunicator> batch, BatchOptions options,
                      BatchGoal goal) {
  options.goal = goal;
  const auto plan = PlanBatch(snapshot, capacity, batch, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  const absl::Status check = CheckBatch(snapshot, capacity, batch, options, *plan);
  EXPECT_TRUE(check.ok()) << check;
  return plan->totals;
}

void ExpectBothIsWithinEntriesFirst(const Snapshot& snapshot,
                                    absl::Span<const SwitchCapacity> capacity,
                                    absl::Span<const BatchCommunicator> batch,
                                    const BatchOptions& options) {
  const BatchTotals entries = TotalsFor(snapshot, capacity, batch, options, BatchGoal::kEntries);
  const BatchTotals both = TotalsFor(snapshot, capacity, batch, options, BatchGoal::kBoth);
  EXPECT_EQ(both.admitted, entries.admitted);
  EXPECT_LE(both.most_packets, entries.most_packets);
  EXPECT_LE(both.entries * 20, entries.entries * 21);
  // Whoever spends more has something for it.
  if (both.entries > entries.entries) {
    EXPECT_LT(both.most_packets, entries.most_packets);
  }
  if (options.reach != RootReach::kAny) {
    EXPECT_LE(both.farther_roots, entries.farther_roots);
  }
  const auto bounds = BoundBatch(snapshot, capacity, batch);
  ASSERT_TRUE(bounds.ok());
  if (both.failures == 0 && both.entries <= bounds->counting + bounds->counting / 20) {
    EXPECT_GE(both.most_packets, bounds->most_packets);
  }
}

TEST(BatchUnloadTest, RandomBatchesOnRandomFabrics) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < (FullTier() ? 2000 : 60); ++round) {
    SCOPED_TRACE(round);
    const auto fabric = RandomFabric(random, 2 + random() % 9, random() % 20, 2 + random() % 30);
    std::vector<float> load;
    for (uint32_t c = 0; round % 3 == 0 && c < fabric->channel_count(); ++c) {
      load.push_back(static_cast<float>(random() % 100) / 100);
    }
    Snapshot snapshot = **MakeSnapshot(fabric, nullptr);
    if (!load.empty()) snapshot.load = std::make_shared<const LinkLoad>(load);
    const auto members = AllEndpoints(*fabric);
    const auto ranks = static_cast<uint32_t>(1 + random() % members.size());
    const auto batch = RandomGroups(1 + random() % 30, ranks, random(), members);
    ASSERT_TRUE(batch.ok());
    std::vector<SwitchCapacity> capacity(fabric->switch_count());
    for (SwitchCapacity& c : capacity) {
      c = {40, static_cast<uint32_t>(random() % 40), static_cast<uint32_t>(random() % 9)};
    }
    BatchOptions options;
    options.reach = static_cast<RootReach>(random() % 3);
    if (round % 4 == 0) options.most_candidates = static_cast<uint32_t>(random() % 40);
    ExpectBothIsWithinEntriesFirst(snapshot, capacity, *batch, options);
  }
}

// Four hosts a leaf switch: whoever has all four of one sends four packets over one link unless the
// leaf serves, and a twentieth more entries is not enough for all of them.
TEST(BatchUnloadTest, GridsAreAsEvenAsTheirLeafSwitches) {
  const auto fabric =
      LoadFabric("model:fat-tree(supernodes=8,leaves=8,spines=4,hosts-per-leaf=4,tops=16)");
  ASSERT_TRUE(fabric.ok());
  const Snapshot snapshot = **MakeSnapshot(*fabric, nullptr);
  const auto members = AllEndpoints(**fabric);
  for (const char* const sizes : {"16x16", "18x14", "8x8x4", "6x6x7"}) {
    for (const uint32_t degree : {32U, 16U, 8U}) {
      SCOPED_TRACE(testing::Message() << sizes << " limit " << degree);
      const auto batch =
          GridLines({*ParseGridSizes(sizes), GridOrder::kFirstAxisFastest, {}}, members);
      ASSERT_TRUE(batch.ok());
      const std::vector<SwitchCapacity> capacity(snapshot.fabric->switch_count(),
                                                 {1000, 1000, degree});
      ExpectBothIsWithinEntriesFirst(snapshot, capacity, *batch, {});
      const BatchTotals both = TotalsFor(snapshot, capacity, *batch, {}, BatchGoal::kBoth);
      const auto paper = PlanOneByOne(snapshot, capacity, *batch, BaselineMethod::kMinimumCost);
      ASSERT_TRUE(paper.ok());
      EXPECT_GE(both.most_packets, 4U);
      EXPECT_LE(both.most_packets, 5U);
      if (both.admitted == paper->admitted) {
        EXPECT_LE(both.most_packets, paper->most_packets);
      }
    }
  }
}

// The paper's method takes three to five times the entries; its links are no less loaded for that.
TEST(BatchUnloadTest, RandomGroupsLoadNoLinkMoreThanThePaper) {
  struct Case {
    const char* fabric;
    uint32_t groups, ranks, seed, degree;
  };
  const std::vector<Case> cases = {
      {"supernodes=20,leaves=16,spines=8,hosts-per-leaf=8,tops=32", 128, 64, 1, 32},
      {"supernodes=32,leaves=8,spines=4,hosts-per-leaf=8,tops=16", 128, 64, 1, 32}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.fabric);
    const auto fabric = LoadFabric(absl::StrCat("model:fat-tree(", c.fabric, ")"));
    ASSERT_TRUE(fabric.ok());
    const Snapshot snapshot = **MakeSnapshot(*fabric, nullptr);
    const auto batch = RandomGroups(c.groups, c.ranks, c.seed, AllEndpoints(**fabric));
    ASSERT_TRUE(batch.ok());
    const std::vector<SwitchCapacity> capacity((*fabric)->switch_count(), {1000, 1000, c.degree});
    const BatchTotals both = TotalsFor(snapshot, capacity, *batch, {}, BatchGoal::kBoth);
    const auto paper = PlanOneByOne(snapshot, capacity, *batch, BaselineMethod::kMinimumCost);
    const auto bounds = BoundBatch(snapshot, capacity, *batch);
    ASSERT_TRUE(paper.ok() && bounds.ok());
    EXPECT_EQ(both.failures, 0U);
    EXPECT_LE(both.entries * 20, bounds->counting * 21);
    EXPECT_LE(both.most_packets, paper->most_packets);
  }
}

// Trees meet over the links of few switches first; one pass over them evens that out, takes no
// entries, and moves nobody where routes are fixed.
TEST(BatchUnloadTest, OnePassOfReroutingEvensLinksOut) {
  const auto fabric =
      LoadFabric("model:fat-tree(supernodes=20,leaves=16,spines=8,hosts-per-leaf=8,tops=32)");
  ASSERT_TRUE(fabric.ok());
  const Snapshot snapshot = **MakeSnapshot(*fabric, nullptr);
  const auto batch = RandomGroups(64, 64, TestSeed(), AllEndpoints(**fabric));
  ASSERT_TRUE(batch.ok());
  const std::vector<SwitchCapacity> capacity((*fabric)->switch_count(), {1000, 1000, 64});
  const auto shapes = FindBatchShapes(snapshot, capacity, *batch);
  ASSERT_TRUE(shapes.ok());
  BatchState state(snapshot, capacity, batch->size(), 0);
  BatchOffers offers(snapshot, state, {});
  for (uint32_t c = 0; c < batch->size(); ++c) {
    const BatchShape& shape = shapes->shapes[shapes->shape_of[c]];
    std::optional<BatchTree> tree =
        offers.TreeTo(shape, shape.nearest[0], shape.nearest_hops, state.degrees());
    ASSERT_TRUE(tree.has_value());
    state.Replace(c, std::move(tree));
  }
  const uint32_t before = state.loads().most();
  const uint64_t entries = state.entries();
  RootCandidates candidates(snapshot, *shapes, state);
  TreeRerouter rerouter(snapshot, *shapes, RootReach::kAny, state, offers, candidates);
  EXPECT_TRUE(rerouter.Pass());
  EXPECT_LT(state.loads().most() * 2, before);
  EXPECT_LE(state.entries(), entries);
  EXPECT_EQ(state.placed(), batch->size());
}

// Leaf switches of one supernode are nearest to the ranks that are all there; with two supernodes
// the one with more of them comes first, and full switches are not put forward.
TEST(RootCandidatesTest, NearestToAllRanksComesFirst) {
  const auto fabric =
      LoadFabric("model:fat-tree(supernodes=2,leaves=4,spines=2,hosts-per-leaf=4,tops=4)");
  ASSERT_TRUE(fabric.ok());
  const Snapshot snapshot = **MakeSnapshot(*fabric, nullptr);
  const auto members = AllEndpoints(**fabric);
  const std::vector<BatchCommunicator> batch = {
      {{members[0], members[4], members[5], members[6], members[16]}, false}};
  std::vector<SwitchCapacity> capacity((*fabric)->switch_count(), {1, 1, 8});
  const SwitchIndex fullest = *(*fabric)->attached_switch(members[4]);
  const SwitchIndex next = *(*fabric)->attached_switch(members[0]);
  for (const bool has_entry : {true, false}) {
    capacity[fullest.value()].entries_free = has_entry ? 1 : 0;
    const auto shapes = FindBatchShapes(snapshot, capacity, batch);
    ASSERT_TRUE(shapes.ok());
    const BatchState state(snapshot, capacity, 1, 0);
    RootCandidates candidates(snapshot, *shapes, state);
    EXPECT_EQ(candidates.Distances(0, 0).size(), 1U);
    const auto distances = candidates.Distances(0, UINT32_MAX);
    EXPECT_TRUE(std::is_sorted(distances.begin(), distances.end()));
    EXPECT_EQ(distances.back(), 4U);
    const auto forward = candidates.PutForward(0, 4, 3);
    ASSERT_EQ(forward.size(), 3U);
    EXPECT_EQ(forward[0], has_entry ? fullest : next);
    EXPECT_TRUE(candidates.PutForward(0, 9, 3).empty());
  }
}

// Somebody else fills all links of the last supernode's first leaf switch, where no rank is: the
// batch cannot mend that, and is as even elsewhere as without it.
TEST(BatchUnloadTest, LinksThatOthersFillDoNotStopIt) {
  const auto fabric =
      LoadFabric("model:fat-tree(supernodes=4,leaves=8,spines=4,hosts-per-leaf=4,tops=16)");
  ASSERT_TRUE(fabric.ok());
  const Snapshot idle = **MakeSnapshot(*fabric, nullptr);
  auto members = AllEndpoints(**fabric);
  std::vector<float> load((*fabric)->channel_count(), 0.0F);
  const SwitchIndex theirs = *(*fabric)->attached_switch(members[3 * 32]);
  for (const Channel& c : (*fabric)->switch_channels(theirs)) {
    load[c.index.value()] = load[Fabric::Reverse(c.index).value()] = 1.0F;
  }
  Snapshot loaded = idle;
  loaded.load = std::make_shared<const LinkLoad>(load);
  members.resize(64);
  const auto batch = GridLines({{8, 8}, GridOrder::kFirstAxisFastest, {}}, members);
  ASSERT_TRUE(batch.ok());
  const std::vector<SwitchCapacity> capacity((*fabric)->switch_count(), {1000, 1000, 16});
  for (const BatchGoal goal : {BatchGoal::kBoth, BatchGoal::kLinks}) {
    const BatchTotals without = TotalsFor(idle, capacity, *batch, {}, goal);
    const BatchTotals with = TotalsFor(loaded, capacity, *batch, {}, goal);
    EXPECT_EQ(with.most_packets, without.most_packets);
    EXPECT_LE(with.most_packets, 5U);
  }
}

// Every root, physical tree over every cable and serving set of tiny batches: nothing is better
// than the oracle's, the bound is no higher, and most plans are as good. The descent changes one
// tree at a time, so that some are not.
TEST(BatchUnloadTest, IsMostlyAsEvenAsBruteForceOnTinyFabrics) {
  std::mt19937_64 random(TestSeed() + 2);
  int compared = 0, best = 0;
  uint32_t worst = 0;
  for (int round = 0; round < (FullTier() ? 3000 : 200); ++round) {
    SCOPED_TRACE(round);
    auto fabric = RandomFabric(random, 2 + random() % 4, 3 + random() % 4, 3 + random() % 6);
    if (round % 3 == 0) fabric = TwoLevelFatTree(2, 1 + random() % 2, 2 + random() % 2);
    const Snapshot snapshot = **MakeSnapshot(fabric, nullptr);
    const auto members = AllEndpoints(*fabric);
    const auto ranks = static_cast<uint32_t>(2 + random() % (members.size() - 1));
    const auto batch = RandomGroups(2 + random() % 2, ranks, random(), members);
    ASSERT_TRUE(batch.ok());
    std::vector<SwitchCapacity> capacity(fabric->switch_count());
    for (SwitchCapacity& c : capacity) c = {2, 2, static_cast<uint32_t>(2 + random() % 6)};
    const BatchTotals totals = TotalsFor(snapshot, capacity, *batch, {}, BatchGoal::kBoth);
    if (totals.failures > 0) continue;
    ++compared;
    const uint32_t least = BestMostPackets(*fabric, capacity, *batch, totals.entries);
    EXPECT_GE(totals.most_packets, least);
    best += totals.most_packets == least ? 1 : 0;
    worst = std::max(worst, totals.most_packets - least);
    const auto bounds = BoundBatch(snapshot, capacity, *batch);
    ASSERT_TRUE(bounds.ok());
    if (totals.entries <= bounds->counting + bounds->counting / 20) {
      EXPECT_LE(bounds->most_packets, least);
    }
  }
  std::printf("%d of %d as even as any, at worst %u packets more\n", best, compared, worst);
  EXPECT_GT(compared, 50);
  EXPECT_GE(best * 10, compared * 8);
}

TEST(BatchUnloadTest, EveryTreeItPlansIsCountedAndTold) {
  const auto fabric =
      LoadFabric("model:fat-tree(supernodes=8,leaves=8,spines=4,hosts-per-leaf=4,tops=16)");
  ASSERT_TRUE(fabric.ok());
  const Snapshot snapshot = **MakeSnapshot(*fabric, nullptr);
  const auto batch =
      GridLines({{8, 8, 4}, GridOrder::kFirstAxisFastest, {}}, AllEndpoints(**fabric));
  ASSERT_TRUE(batch.ok());
  const std::vector<SwitchCapacity> capacity((*fabric)->switch_count(), {1000, 1000, 32});
  const auto told = [&](BatchGoal goal) {
    std::vector<uint32_t> improved;
    BatchOptions options;
    options.goal = goal;
    const auto plan = PlanBatch(snapshot, capacity, *batch, options,
                                [&](BatchPhase phase, uint32_t done, uint32_t) {
                                  if (phase == BatchPhase::kImproving) improved.push_back(done);
                                });
    EXPECT_TRUE(plan.ok());
    return improved;
  };
  const std::vector<uint32_t> entries = told(BatchGoal::kEntries), both = told(BatchGoal::kBoth);
  EXPECT_GT(both.size(), entries.size());
  EXPECT_TRUE(std::is_sorted(both.begin(), both.end()));
  EXPECT_EQ(both.back(), batch->size());

  BatchOptions none;
  none.most_candidates = 0;
  EXPECT_EQ(TotalsFor(snapshot, capacity, *batch, none, BatchGoal::kBoth).most_packets,
            TotalsFor(snapshot, capacity, *batch, none, BatchGoal::kEntries).most_packets);
}

//      S2  S3       Leaf switches S0 and S1 with two hosts each.
//      | \/ |
//      | /\ |
//      S0  S1
TEST(PathSpreaderTest, CountsPacketsAndRefusesWhatFindsNoRoom) {
  const auto fabric = TwoLevelFatTree(2, 2, 2);
  const Snapshot snapshot = **MakeSnapshot(fabric, nullptr);
  const std::vector<BatchCommunicator> batch = {{AllEndpoints(*fabric), false}};
  const std::vector<SwitchCapacity> capacity(4, {1, 1, 4});
  const auto shapes = FindBatchShapes(snapshot, capacity, batch);
  ASSERT_TRUE(shapes.ok());
  const LinkLoads loads(snapshot, 0);
  PathSpreader spreader(snapshot, loads);
  const BatchShape& shape = shapes->shapes[0];
  const auto alone = spreader.Build(shape, SwitchIndex(2), std::vector<uint32_t>{0, 0, 4, 0});
  ASSERT_TRUE(alone.has_value());
  EXPECT_EQ(alone->serving, std::vector<uint32_t>{0});
  EXPECT_EQ(alone->packets, (std::vector<uint32_t>{0, 2, 2}));
  // Three children are too few for four ranks; with both leaf switches two are enough.
  EXPECT_FALSE(spreader.Build(shape, SwitchIndex(2), std::vector<uint32_t>{0, 0, 3, 0}));
  const auto all = spreader.Build(shape, SwitchIndex(2), std::vector<uint32_t>{2, 2, 2, 0});
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->serving, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(all->packets, (std::vector<uint32_t>{0, 1, 1}));
  // Two of the root's ranks are its own, the others come over one spine.
  const auto below = spreader.Build(shape, SwitchIndex(0), std::vector<uint32_t>{4, 0, 0, 0});
  ASSERT_TRUE(below.has_value());
  EXPECT_EQ(below->physical.switches.size(), 3U);
  EXPECT_EQ(below->packets, (std::vector<uint32_t>{0, 2, 2}));
  // A root serves, whoever else does.
  EXPECT_FALSE(spreader.Build(shape, SwitchIndex(2), std::vector<uint32_t>{2, 2, 0, 0}));
  EXPECT_FALSE(spreader.Build(shape, SwitchIndex(2), std::vector<uint32_t>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace coppice::batch_unload_test
