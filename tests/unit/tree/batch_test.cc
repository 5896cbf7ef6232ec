#include "daemon/tree/batch/batch.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "daemon/tree/batch/baseline.h"
#include "daemon/tree/batch/grid.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/batch_check.h"
#include "tests/support/fabrics.h"
#include "tests/support/tier.h"
#include "tests/unit/tree/batch_oracle.h"
#include "tests/unit/tree/plan_check.h"

namespace coppice::batch_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::shared_ptr<const Snapshot> Snap(FabricPtr fabric) {
  auto snapshot = MakeSnapshot(std::move(fabric), nullptr);
  EXPECT_TRUE(snapshot.ok()) << snapshot.status();
  return *snapshot;
}

std::vector<SwitchCapacity> Capacity(const Snapshot& snapshot, uint32_t entries, uint32_t degree) {
  return std::vector<SwitchCapacity>(snapshot.fabric->switch_count(), {entries, entries, degree});
}

std::vector<BatchCommunicator> Lines(const Snapshot& snapshot, absl::string_view sizes) {
  const auto members = AllEndpoints(*snapshot.fabric);
  auto lines = GridLines({*ParseGridSizes(sizes), GridOrder::kFirstAxisFastest, {}}, members);
  EXPECT_TRUE(lines.ok()) << lines.status();
  return *lines;
}

BatchPlan Planned(const Snapshot& snapshot, absl::Span<const SwitchCapacity> capacity,
                  absl::Span<const BatchCommunicator> batch, const BatchOptions& options = {}) {
  auto plan = PlanBatch(snapshot, capacity, batch, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  const absl::Status check = CheckBatch(snapshot, capacity, batch, options, *plan);
  EXPECT_TRUE(check.ok()) << check;
  return *std::move(plan);
}

TEST(BatchTest, PlacesAProcessGridWithOneEntryEach) {
  const auto snapshot = Snap(ThreeLevelFatTree(4, 4, 2, 4, 4));
  const auto batch = Lines(*snapshot, "16x4");
  const auto capacity = Capacity(*snapshot, 2, 64);
  const BatchPlan plan = Planned(*snapshot, capacity, batch);
  EXPECT_EQ(plan.totals.admitted, 20U);
  EXPECT_EQ(plan.totals.entries, 20U);
  EXPECT_EQ(plan.totals.failures, 0U);
}

TEST(BatchTest, ReportsProgressOfBothPhases) {
  const auto snapshot = Snap(ThreeLevelFatTree(4, 4, 2, 4, 4));
  const auto batch = Lines(*snapshot, "8x8");
  std::vector<uint32_t> planned, improved;
  BatchOptions options;
  options.most_candidates = 1000;
  const auto plan =
      PlanBatch(*snapshot, Capacity(*snapshot, 1, 3), batch, options,
                [&](BatchPhase phase, uint32_t done, uint32_t total) {
                  EXPECT_EQ(total, 16U);
                  EXPECT_TRUE(phase == BatchPhase::kImproving || improved.empty());
                  (phase == BatchPhase::kPlanning ? planned : improved).push_back(done);
                });
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(planned.size(), 16U);
  for (uint32_t i = 0; i < planned.size(); ++i) EXPECT_EQ(planned[i], i + 1);
  EXPECT_GT(improved.size(), 1U);
  EXPECT_TRUE(std::is_sorted(improved.begin(), improved.end()));
  EXPECT_EQ(improved.back(), 16U);
}

// S0 and S1 have 2 hosts each, S2 and S3 are spines with one entry; the pair that spans S0 and S1
// wants a spine, and so do three more of them.
TEST(BatchTest, GoesToFartherRootsOnlyWhenNearestAreFull) {
  const auto snapshot = Snap(TwoLevelFatTree(2, 2, 2));
  const std::vector<BatchCommunicator> batch(4, {AllEndpoints(*snapshot->fabric), false});
  const auto capacity = Capacity(*snapshot, 1, 8);
  const BatchPlan plan = Planned(*snapshot, capacity, batch);
  EXPECT_EQ(plan.totals.admitted, 4U);
  EXPECT_EQ(plan.totals.farther_roots, 2U);
  BatchOptions nearest;
  nearest.reach = RootReach::kNearest;
  const BatchPlan less = Planned(*snapshot, capacity, batch, nearest);
  EXPECT_EQ(less.totals.admitted, 2U);
  EXPECT_EQ(less.totals.failures, 2U);
  for (const CommunicatorResult& result : less.communicators) {
    if (result.tree) continue;
    EXPECT_EQ(result.full_switches.size(), 2U);
    EXPECT_THAT(result.why_not, HasSubstr("\"S2\" (1 entries)"));
  }
}

// A chain S0 - S1 - S2: the pair on S0 and S2 wants S1, which the pair on S0 and S1 took first,
// although S0 would do for it.
TEST(BatchTest, MovesPlacedOnesOffAFullSwitch) {
  const auto snapshot = Snap(Chain(3, 2));
  const auto e = AllEndpoints(*snapshot->fabric);
  const std::vector<BatchCommunicator> batch = {
      {{e[0], e[2]}, false}, {{e[1], e[3]}, false}, {{e[0], e[4]}, false}};
  BatchOptions nearest;
  nearest.reach = RootReach::kNearest;
  auto capacity = Capacity(*snapshot, 1, 8);
  capacity[0].entries_free = 2;
  const BatchPlan plan = Planned(*snapshot, capacity, batch, nearest);
  EXPECT_EQ(plan.totals.admitted, 3U);
}

TEST(BatchTest, RefusesAloneWhatCannotBePlanned) {
  FabricPlan two;
  two.switches = 2;
  two.hosts = {{0}, {0}, {1}, {1}};
  const auto snapshot = Snap(MakeFabric(two));
  const auto e = AllEndpoints(*snapshot->fabric);
  const std::vector<BatchCommunicator> batch = {{{e[0], e[1]}, false}, {{e[1], e[2]}, false}};
  const BatchPlan plan = Planned(*snapshot, Capacity(*snapshot, 4, 8), batch);
  EXPECT_TRUE(plan.communicators[0].tree.has_value());
  EXPECT_FALSE(plan.communicators[1].tree.has_value());
  EXPECT_THAT(plan.communicators[1].why_not, HasSubstr("different subnetworks"));
}

TEST(BatchTest, RejectsRequestsThatMakeNoSense) {
  const auto snapshot = Snap(TwoLevelFatTree(2, 2, 2));
  const auto capacity = Capacity(*snapshot, 4, 8);
  const std::vector<BatchCommunicator> empty(1);
  EXPECT_EQ(PlanBatch(*snapshot, capacity, empty).status().code(),
            absl::StatusCode::kInvalidArgument);
  const std::vector<BatchCommunicator> unknown = {{{EndpointIndex(99)}, false}};
  EXPECT_THAT(std::string(PlanBatch(*snapshot, capacity, unknown).status().message()),
              HasSubstr("communicator 0: rank 0 is on endpoint number 99"));
  EXPECT_FALSE(PlanBatch(*snapshot, {}, {}).ok());
  EXPECT_TRUE(PlanBatch(*snapshot, capacity, {}).ok());
}

TEST(BatchTest, GivesOneRankATreeWithoutSwitches) {
  const auto snapshot = Snap(TwoLevelFatTree(2, 2, 2));
  const auto capacity = Capacity(*snapshot, 1, 8);
  const std::vector<BatchCommunicator> batch(9, {{EndpointIndex(0)}, false});
  const BatchPlan plan = Planned(*snapshot, capacity, batch);
  EXPECT_EQ(plan.totals.admitted, 9U);
  EXPECT_EQ(plan.totals.entries, 0U);
}

TEST(BatchTest, KeepsOffLoadedLinks) {
  const auto snapshot = Snap(TwoLevelFatTree(2, 2, 2));
  auto loaded = std::make_shared<Snapshot>(*snapshot);
  std::vector<float> load(snapshot->fabric->channel_count(), 0.0F);
  for (const Channel& c : snapshot->fabric->switch_channels(SwitchIndex(2))) {
    load[c.index.value()] = load[Fabric::Reverse(c.index).value()] = 0.5F;
  }
  loaded->load = std::make_shared<const LinkLoad>(load);
  const std::vector<BatchCommunicator> batch(5, {AllEndpoints(*snapshot->fabric), false});
  const BatchPlan plan = Planned(*loaded, Capacity(*snapshot, 16, 8), batch);
  for (const CommunicatorResult& result : plan.communicators) {
    EXPECT_THAT(result.tree->physical.switches, Not(Contains(SwitchIndex(2))));
  }
}

TEST(BatchTest, TreesOfABatchAreTreesOfThePlanner) {
  const auto snapshot = Snap(ThreeLevelFatTree(3, 2, 2, 2, 3));
  const auto batch = Lines(*snapshot, "6x3");
  const auto capacity = Capacity(*snapshot, 16, 4);
  const CostProfile profile = *BuiltInProfile("hdr");
  const BatchPlan plan = Planned(*snapshot, capacity, batch);
  for (size_t c = 0; c < batch.size(); ++c) {
    ASSERT_TRUE(plan.communicators[c].tree.has_value());
    TreeRequest request;
    request.members = batch[c].members;
    request.type = TreeType::kTypeII;
    const auto tree =
        PlanOfBatchTree(*snapshot, profile, capacity, request, *plan.communicators[c].tree);
    ASSERT_TRUE(tree.ok()) << tree.status();
    const absl::Status check = CheckPlan(*snapshot, profile, *tree, request, capacity);
    EXPECT_TRUE(check.ok()) << check;
  }
}

std::vector<BatchCommunicator> RandomBatch(std::mt19937_64& random, const Fabric& fabric,
                                           uint32_t most, uint32_t most_ranks) {
  std::vector<BatchCommunicator> batch(1 + random() % most);
  for (BatchCommunicator& communicator : batch) {
    communicator.members.resize(1 + random() % most_ranks);
    for (EndpointIndex& e : communicator.members) {
      e = EndpointIndex(static_cast<uint32_t>(random() % fabric.endpoint_count()));
    }
  }
  return batch;
}

std::vector<SwitchCapacity> RandomCapacity(std::mt19937_64& random, const Fabric& fabric) {
  std::vector<SwitchCapacity> capacity(fabric.switch_count());
  for (SwitchCapacity& c : capacity) {
    c.entries_total = 4;
    c.entries_free = static_cast<uint32_t>(random() % 5);
    c.degree_limit = static_cast<uint32_t>(random() % 7);
  }
  return capacity;
}

// Random fabrics with parallel links, several components, limits of 0 and 1, loads and every kind
// of route: whatever comes out is valid, and nobody is refused whom one by one admits.
TEST(BatchTest, IsValidOnRandomFabrics) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < (FullTier() ? 3000 : 200); ++round) {
    SCOPED_TRACE(round);
    auto fabric = RandomFabric(random, 2 + random() % 9, random() % 20, 2 + random() % 20);
    auto snapshot = std::make_shared<Snapshot>(*Snap(fabric));
    if (round % 2 == 0) {
      std::vector<float> load(fabric->channel_count());
      for (float& u : load) u = static_cast<float>(random() % 100) / 100;
      snapshot->load = std::make_shared<const LinkLoad>(load);
    }
    const auto batch = RandomBatch(random, *fabric, 12, 10);
    const auto capacity = RandomCapacity(random, *fabric);
    BatchOptions options;
    options.reach = static_cast<RootReach>(random() % 3);
    const BatchPlan plan = Planned(*snapshot, capacity, batch, options);
    const auto one_by_one =
        PlanOneByOne(*snapshot, capacity, batch, BaselineMethod::kMinimumCost, options);
    ASSERT_TRUE(one_by_one.ok());
    EXPECT_GE(plan.totals.admitted, one_by_one->admitted);
    const auto bounds = BoundBatch(*snapshot, capacity, batch);
    ASSERT_TRUE(bounds.ok());
    EXPECT_GE(plan.totals.failures, bounds->failures);
    if (plan.totals.failures == 0) {
      EXPECT_GE(plan.totals.entries, bounds->counting);
    }
  }
}

//   20 ranks - S0 =20=> S1 =10=> S2      S1 serves 11 of those that cross the first cable, S2 the
//                                        other 9 and S1: nobody's own packets, but the cable's,
//                                        last
TEST(BatchTest, TimesOfABatchKnowLinksQueues) {
  const auto snapshot = Snap(Chain(3, 20));
  std::vector<EndpointIndex> members = AllEndpoints(*snapshot->fabric);
  members.resize(20);
  auto capacity = Capacity(*snapshot, 1, 11);
  capacity[0] = {};
  const CostProfile profile = *BuiltInProfile("hdr");
  const BatchPlan plan = Planned(*snapshot, capacity, {BatchCommunicator{members, false}});
  ASSERT_TRUE(plan.communicators[0].tree.has_value()) << plan.communicators[0].why_not;
  TreeRequest request;
  request.members = members;
  request.type = TreeType::kTypeII;
  request.sizes = {{uint64_t{65536}, 1}};
  const auto tree =
      PlanOfBatchTree(*snapshot, profile, capacity, request, *plan.communicators[0].tree);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const absl::Status check = CheckPlan(*snapshot, profile, *tree, request, capacity);
  EXPECT_TRUE(check.ok()) << check;
  const Prediction alone = EvaluateMix(profile, tree->tree, tree->edges, request);
  EXPECT_GT(tree->predicted.total_us, alone.total_us * 1.1);
}

// Tiny fabrics of every sort, few entries, low limits: as many admitted, as few farther roots and
// as few entries as brute force finds.
TEST(BatchTest, IsAsGoodAsBruteForceOnTinyFabrics) {
  std::mt19937_64 random(TestSeed() + 1);
  for (int round = 0; round < (FullTier() ? 4000 : 200); ++round) {
    SCOPED_TRACE(round);
    auto fabric = RandomFabric(random, 2 + random() % 5, 3 + random() % 8, 3 + random() % 8);
    if (round % 3 == 0) fabric = TwoLevelFatTree(2 + random() % 2, 1 + random() % 2, 2);
    const auto snapshot = Snap(fabric);
    const auto batch = RandomBatch(random, *fabric, 5, 7);
    auto capacity = RandomCapacity(random, *fabric);
    for (SwitchCapacity& c : capacity) {
      c.entries_free = std::min(c.entries_free, 2U);
      if (round % 2 == 0) c.degree_limit = 2 + c.degree_limit % 4;
    }
    BatchOptions options;
    options.reach = static_cast<RootReach>(random() % 3);
    const BatchPlan plan = Planned(*snapshot, capacity, batch, options);
    const BatchOutcome ours = {plan.totals.failures,
                               options.reach == RootReach::kAny ? 0 : plan.totals.farther_roots,
                               plan.totals.entries};
    EXPECT_EQ(ours, BestOutcome(*fabric, capacity, batch, options.reach));
  }
}

TEST(BatchTest, EqualRequestsGetEqualPlans) {
  const auto snapshot = Snap(ThreeLevelFatTree(4, 4, 2, 4, 4));
  const auto batch = Lines(*snapshot, "8x8");
  const auto capacity = Capacity(*snapshot, 2, 4);
  const BatchPlan a = Planned(*snapshot, capacity, batch), b = Planned(*snapshot, capacity, batch);
  for (size_t c = 0; c < batch.size(); ++c) {
    ASSERT_EQ(a.communicators[c].tree.has_value(), b.communicators[c].tree.has_value());
    if (!a.communicators[c].tree) continue;
    EXPECT_EQ(a.communicators[c].tree->physical.switches,
              b.communicators[c].tree->physical.switches);
    EXPECT_EQ(a.communicators[c].tree->serving, b.communicators[c].tree->serving);
  }
}

TEST(BatchTest, CheckNoticesWhatIsWrong) {
  const auto snapshot = Snap(TwoLevelFatTree(4, 2, 4));
  const auto batch = Lines(*snapshot, "8x2");
  const auto capacity = Capacity(*snapshot, 4, 8);
  const BatchPlan good = Planned(*snapshot, capacity, batch);
  const auto broken = [&](auto change) {
    BatchPlan plan = good;
    change(plan);
    return !CheckBatch(*snapshot, capacity, batch, {}, plan).ok();
  };
  EXPECT_TRUE(broken([](BatchPlan& p) { ++p.totals.entries; }));
  EXPECT_TRUE(broken([](BatchPlan& p) { ++p.totals.most_packets; }));
  EXPECT_TRUE(broken([](BatchPlan& p) { ++p.totals.admitted; }));
  EXPECT_TRUE(broken([](BatchPlan& p) { p.communicators[0].tree.reset(); }));
  EXPECT_TRUE(broken([](BatchPlan& p) { p.communicators.pop_back(); }));
  EXPECT_TRUE(broken([](BatchPlan& p) { ++p.communicators[0].tree->packets[1]; }));
  EXPECT_TRUE(broken([](BatchPlan& p) {
    std::swap(p.communicators[0].tree->physical.up[1], p.communicators[0].tree->physical.up[2]);
  }));
  auto fewer = capacity;
  for (SwitchCapacity& c : fewer) c.entries_free = 0;
  EXPECT_FALSE(CheckBatch(*snapshot, fewer, batch, {}, good).ok());
}

}  // namespace
}  // namespace coppice::batch_test
