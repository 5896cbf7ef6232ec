// Trees on a subnet whose forwarding tables come after its cables: repairs wait for no routing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/tier.h"
#include "tests/unit/manager/routed_fixture.h"

namespace coppice::repair_routes_test {
namespace {

using testing::HasSubstr;

using RepairRoutesTest = RoutedManagerTest;

TEST_F(RepairRoutesTest, ATreeMovesBeforeTheTablesDo) {
  Begin();
  const auto tree = TreeOver(0, 7);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(RouteKind::kForwardingTables, tree->route_kind);
  const uint32_t spine = SpineOf(*tree->record);
  Picture picture(*manager_);
  picture.Read();
  const FabricShape cut{.missing_cables = {{0, spine}}};
  ASSERT_NO_FATAL_FAILURE(SweepTo(cut, {}));
  EXPECT_FALSE(manager_->fabric()->routes_settled);
  auto now = manager_->GetTree(tree->record->id);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(2u, now->record->revision);
  EXPECT_EQ(2, now->record->type);
  EXPECT_EQ(1 - spine, SpineOf(*now->record));
  auto changes = picture.Read();
  ASSERT_EQ(1u, changes.size());
  if (now->route_kind == RouteKind::kShortestPath) {
    EXPECT_THAT(changes[0].reason, HasSubstr("over shortest paths"));
  }
  // The same again: it stands.
  ASSERT_NO_FATAL_FAILURE(SweepTo(cut, {}));
  EXPECT_TRUE(picture.Read().empty());
  EXPECT_FALSE(manager_->fabric()->routes_settled);
  // The tables follow: the tree stays where it is.
  ASSERT_NO_FATAL_FAILURE(SweepTo(cut, cut));
  EXPECT_FALSE(manager_->fabric()->routes_settled);  // they have just changed
  now = manager_->GetTree(tree->record->id);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(RouteKind::kForwardingTables, now->route_kind);
  EXPECT_EQ(1 - spine, SpineOf(*now->record));
  ASSERT_NO_FATAL_FAILURE(SweepTo(cut, cut));
  EXPECT_TRUE(manager_->fabric()->routes_settled);
}

TEST_F(RepairRoutesTest, WhatNoLinksJoinIsRevokedAtOnce) {
  Begin();
  const auto tree = TreeOver(0, 7), other = TreeOver(8, 15);
  ASSERT_TRUE(tree.ok() && other.ok());
  ASSERT_NO_FATAL_FAILURE(SweepTo({.missing_cables = {{0, 0}, {0, 1}}}, {}));
  EXPECT_TRUE(absl::IsNotFound(manager_->GetTree(tree->record->id).status()));
  EXPECT_TRUE(manager_->GetTree(other->record->id).ok());
  EXPECT_TRUE(EventsOf("trees.broken").empty());
}

// Nothing that the tree crosses is lost, but for a while no table leads there.
TEST_F(RepairRoutesTest, ATreeWhoseLinksAllLiveStays) {
  Begin();
  const auto tree = TreeOver(0, 7);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const uint32_t spine = SpineOf(*tree->record);
  FabricShape nothing_routed;
  nothing_routed.missing_spines = {0, 1};
  ASSERT_NO_FATAL_FAILURE(SweepTo({}, nothing_routed));
  auto now = manager_->GetTree(tree->record->id);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(spine, SpineOf(*now->record));
  EXPECT_EQ(RouteKind::kShortestPath, now->route_kind);
  EXPECT_EQ(tree->record->physical, now->record->physical);
  EXPECT_TRUE(EventsOf("trees.repaired").empty());
  ASSERT_NO_FATAL_FAILURE(SweepTo({}, {}));
  now = manager_->GetTree(tree->record->id);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(RouteKind::kForwardingTables, now->route_kind);
  EXPECT_EQ(tree->record->links, now->record->links);
}

// The subnet manager leads around a cable that lives: packets take it no more, and the tree says
// so.
TEST_F(RepairRoutesTest, AReroutedTreeTellsTheCablesThatItTakesNow) {
  Begin();
  const auto tree = TreeOver(0, 7);
  ASSERT_TRUE(tree.ok()) << tree.status();
  const uint32_t spine = SpineOf(*tree->record);
  Picture picture(*manager_);
  picture.Read();
  ASSERT_NO_FATAL_FAILURE(SweepTo({}, {.missing_cables = {{0, spine}}}));
  const auto changes = picture.Read();
  ASSERT_EQ(1u, changes.size());
  EXPECT_EQ(TreeChangeKind::kRevised, changes[0].kind);
  EXPECT_EQ("routes moved", changes[0].reason);
  const TreeRecord& now = *changes[0].tree.record;
  EXPECT_EQ(RouteKind::kForwardingTables, changes[0].tree.route_kind);
  EXPECT_NE(tree->record->physical, now.physical);
  const FabricView& view = *manager_->fabric();
  const PhysicalTree physical = PlacePhysical(*view.snapshot->fabric, *view.link_ids, now);
  for (const ChannelIndex up : physical.up) {
    if (up == kNoChannel) continue;
    const int64_t link = (*view.link_ids)[Fabric::link_of(up).value()];
    EXPECT_TRUE(std::binary_search(now.links.begin(), now.links.end(), link)) << link;
  }
}

TEST_F(RepairRoutesTest, RandomTablesThatLagBehind) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  const int runs = FullTier() ? 300 : 15;
  for (int run = 0; run < runs && !HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    Begin(1 + below(4));
    Picture picture(*manager_);
    FabricShape routed;
    for (int round = 0; round < 8 && !HasFailure(); ++round) {
      const uint32_t first = below(12);
      TreeOver(first, first + 1 + below(15 - first)).IgnoreError();
      FabricShape present;
      for (uint32_t n = below(3); n > 0; --n) present.missing_cables.insert({below(4), below(2)});
      if (below(4) == 0) present.missing_hosts.insert(below(16));
      if (below(6) == 0) present.missing_spines.insert(below(2));
      ASSERT_NO_FATAL_FAILURE(SweepTo(present, routed));
      picture.Read();
      picture.ExpectEquals(*manager_);
      if (below(2) == 0) continue;
      routed = present;
      ASSERT_NO_FATAL_FAILURE(SweepTo(present, routed));
      for (const TreeView& tree : manager_->ListTrees(JobId(), TreeId(), 1000)) {
        EXPECT_EQ(RouteKind::kForwardingTables, tree.route_kind);
      }
    }
  }
}

}  // namespace
}  // namespace coppice::repair_routes_test
