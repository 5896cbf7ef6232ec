// Trees that were repaired with what there was get a better plan when there is one, and only then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/routed_fixture.h"

namespace coppice::replanning_test {
namespace {

using testing::HasSubstr;

// Leaf switches 0 and 1 without a spine in common: their packets go by way of another leaf switch.
const FabricShape kApart{.missing_cables = {{0, 0}, {1, 1}}};

class ReplanningTest : public RoutedManagerTest {
 protected:
  void SweepUnrouted(const FabricShape& shape) {
    port_.Set(SmallFabric(shape));
    ASSERT_TRUE(manager_->Sweep().ok());
    ExpectAllStand(*manager_);
    ExpectConserved();
  }
  TreeView Now(const absl::StatusOr<TreeView>& tree) {
    const absl::StatusOr<TreeView> now = manager_->GetTree(tree->record->id);
    EXPECT_TRUE(now.ok()) << now.status();
    return *now;
  }
};

TEST_F(ReplanningTest, ATreeReturnsWhenTheLinkIsBack) {
  Boot();
  const auto tree = TreeOver(0, 7);
  ASSERT_TRUE(tree.ok()) << tree.status();
  ASSERT_NO_FATAL_FAILURE(SweepUnrouted(kApart));
  const double repaired_us = Now(tree).record->total_us;
  EXPECT_EQ(2u, Now(tree).record->revision);
  EXPECT_GT(repaired_us, 1.05 * tree->record->total_us);
  Picture picture(*manager_);
  picture.Read();
  ASSERT_NO_FATAL_FAILURE(SweepUnrouted({}));
  const TreeView again = Now(tree);
  EXPECT_EQ(3u, again.record->revision);
  EXPECT_NEAR(again.record->total_us, tree->record->total_us, 1e-6);
  EXPECT_EQ(tree->record->spec, again.record->spec);
  const auto changes = picture.Read();
  ASSERT_EQ(1u, changes.size());
  EXPECT_THAT(changes[0].reason, HasSubstr("planned again"));
  EXPECT_EQ(1u, EventsOf("trees.replanned").size());
  // Once is enough.
  ASSERT_NO_FATAL_FAILURE(SweepUnrouted({}));
  EXPECT_EQ(3u, Now(tree).record->revision);
}

TEST_F(ReplanningTest, ATreeWaitsUntilTheTablesHaveSettled) {
  Begin();
  const auto tree = TreeOver(2, 5);
  ASSERT_TRUE(tree.ok()) << tree.status();
  ASSERT_NO_FATAL_FAILURE(SweepTo(kApart, {}));
  ASSERT_NO_FATAL_FAILURE(SweepTo(kApart, kApart));
  ASSERT_NO_FATAL_FAILURE(SweepTo(kApart, kApart));
  EXPECT_TRUE(manager_->fabric()->routes_settled);
  EXPECT_GT(Now(tree).record->total_us, 1.05 * tree->record->total_us);
  // The cables are back, and then the tables; what they are the next time is what they are.
  ASSERT_NO_FATAL_FAILURE(SweepTo({}, kApart));
  ASSERT_NO_FATAL_FAILURE(SweepTo({}, {}));
  EXPECT_FALSE(manager_->fabric()->routes_settled);
  EXPECT_TRUE(EventsOf("trees.replanned").empty());
  ASSERT_NO_FATAL_FAILURE(SweepTo({}, {}));
  EXPECT_TRUE(manager_->fabric()->routes_settled);
  EXPECT_NEAR(Now(tree).record->total_us, tree->record->total_us, 1e-6);
  EXPECT_EQ(RouteKind::kForwardingTables, Now(tree).route_kind);
}

TEST_F(ReplanningTest, ATreeStaysWhereAnotherIsNotSooner) {
  Boot();
  const auto tree = TreeOver(0, 7);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const uint32_t spine = SpineOf(*tree->record);
  ASSERT_NO_FATAL_FAILURE(SweepUnrouted({.missing_cables = {{0, spine}}}));
  EXPECT_EQ(2u, Now(tree).record->revision);
  ASSERT_NO_FATAL_FAILURE(SweepUnrouted({}));
  EXPECT_EQ(2u, Now(tree).record->revision);
  EXPECT_EQ(1 - spine, SpineOf(*Now(tree).record));
}

// The way by another leaf switch is 0.3 us longer: much of a short message, little of a long one.
TEST_F(ReplanningTest, ATreeMovesForMoreThanFivePercent) {
  const struct {
    std::vector<SizeShare> sizes;
    double gain;  // of the way back
    uint64_t revision;
  } kCases[] = {{{{8, 13}, {64 << 10, 7}}, 1.03, 2}, {{{8, 12}, {64 << 10, 1}}, 1.08, 3}};
  Boot();
  for (const auto& mix : kCases) {
    SCOPED_TRACE(mix.gain);
    const auto tree = TreeOver(0, 7, {.sizes = mix.sizes});
    ASSERT_TRUE(tree.ok()) << tree.status();
    ASSERT_NO_FATAL_FAILURE(SweepUnrouted(kApart));
    const TreeView repaired = Now(tree);
    ASSERT_EQ(2u, repaired.record->revision);
    ASSERT_NEAR(repaired.record->total_us / tree->record->total_us, mix.gain, 0.005);
    ASSERT_NO_FATAL_FAILURE(SweepUnrouted({}));
    EXPECT_EQ(mix.revision, Now(tree).record->revision);
    ASSERT_TRUE(End(tree->record->job).ok());
  }
}

// What others have taken meanwhile stays theirs.
TEST_F(ReplanningTest, ATreeStaysWhereEntriesAreTaken) {
  Boot(Options(1));
  const auto tree = TreeOver(0, 7);
  ASSERT_TRUE(tree.ok()) << tree.status();
  ASSERT_NO_FATAL_FAILURE(SweepUnrouted(kApart));
  for (uint32_t leaf = 0; leaf < 4; ++leaf) TreeOver(4 * leaf, 4 * leaf + 3).IgnoreError();
  while (TreeOver(8, 15).ok()) {
  }
  while (TreeOver(2, 9).ok()) {
  }
  const TreeView before = Now(tree);
  ASSERT_NO_FATAL_FAILURE(SweepUnrouted({}));
  EXPECT_EQ(before.record->revision, Now(tree).record->revision);
  EXPECT_EQ(before.record->switches, Now(tree).record->switches);
}

}  // namespace
}  // namespace coppice::replanning_test
