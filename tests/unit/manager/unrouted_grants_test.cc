// Grants while the subnet manager is behind: shortest paths carry them until its tables follow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "daemon/manager/tree_draft.h"
#include "tests/unit/manager/routed_fixture.h"

namespace coppice::unrouted_grants_test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kSaid(kOverLinks);

class UnroutedGrantsTest : public RoutedManagerTest {
 protected:
  // No table leads over a spine, though all cables are there.
  void LoseRoutes() {
    FabricShape nothing_routed;
    nothing_routed.missing_spines = {0, 1};
    ASSERT_NO_FATAL_FAILURE(SweepTo({}, nothing_routed));
    ASSERT_FALSE(manager_->fabric()->routes_settled);
  }
  void FindRoutes() {
    ASSERT_NO_FATAL_FAILURE(SweepTo({}, {}));
    ASSERT_NO_FATAL_FAILURE(SweepTo({}, {}));
    ASSERT_TRUE(manager_->fabric()->routes_settled);
  }
  absl::StatusOr<std::shared_ptr<const BatchView>> Grant(CreateBatchArgs args) {
    Answer<std::shared_ptr<const BatchView>> answer;
    manager_->BatchCreateTrees(std::move(args), {}, answer.Callback());
    return answer.Get();
  }
  static CreateBatchArgs Columns(JobId job) {
    CreateBatchArgs args;
    args.job = job;
    args.communicators = {{0, 4, 8, 12}, {1, 5, 9, 13}, {0, 1, 2, 3}};
    return args;
  }
  void ExpectRouted(TreeId id) {
    const auto tree = manager_->GetTree(id);
    ASSERT_TRUE(tree.ok()) << tree.status();
    EXPECT_EQ(RouteKind::kForwardingTables, tree->route_kind);
    EXPECT_THAT(tree->record->reason, Not(HasSubstr("shortest paths of the links")));
  }
};

TEST_F(UnroutedGrantsTest, ATreeIsGrantedAndFollowsTheTables) {
  Begin();
  ASSERT_NO_FATAL_FAILURE(LoseRoutes());
  const auto tree = TreeOver(0, 7);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ(RouteKind::kShortestPath, tree->route_kind);
  EXPECT_THAT(tree->record->reason, testing::EndsWith(kSaid));
  ExpectStands(*manager_->fabric(), *manager_->profile(), *tree);
  ExpectConserved();
  ASSERT_NO_FATAL_FAILURE(FindRoutes());
  ExpectRouted(tree->record->id);
  EXPECT_EQ(tree->record->physical, manager_->GetTree(tree->record->id)->record->physical);
  EXPECT_TRUE(EventsOf("trees.repaired").empty());
}

TEST_F(UnroutedGrantsTest, BothTypesAndAdvice) {
  Begin();
  const JobId job = NewJob();
  ASSERT_NO_FATAL_FAILURE(LoseRoutes());
  for (const TreeType type : {TreeType::kTypeI, TreeType::kTypeII}) {
    const auto advice = manager_->AdviseTree(TreeOf(job, type));
    ASSERT_TRUE(advice.ok()) << advice.status();
    EXPECT_EQ(RouteKind::kShortestPath, advice->route_kind);
    EXPECT_THAT(advice->record->reason, testing::EndsWith(kSaid));
    const auto tree = Create(TreeOf(job, type));
    ASSERT_TRUE(tree.ok()) << tree.status();
    EXPECT_EQ(RouteKind::kShortestPath, tree->route_kind);
    EXPECT_EQ(advice->record->parents, tree->record->parents);
  }
  // Where the tables do lead, they are what counts.
  const auto local = TreeOver(0, 3);  // of one leaf
  ASSERT_TRUE(local.ok()) << local.status();
  EXPECT_EQ(RouteKind::kForwardingTables, local->route_kind);
  EXPECT_THAT(local->record->reason, Not(HasSubstr("shortest paths of the links")));
  ASSERT_NO_FATAL_FAILURE(FindRoutes());
  for (const TreeView& tree : manager_->ListTrees(job, TreeId(), 10)) {
    ExpectRouted(tree.record->id);
  }
}

TEST_F(UnroutedGrantsTest, ABatchGoesOverTheLinksAsAWhole) {
  Begin(8);
  const JobId job = NewJob();
  ASSERT_NO_FATAL_FAILURE(LoseRoutes());
  for (const bool largest_part : {false, true}) {
    CreateBatchArgs args = Columns(job);
    args.largest_part = largest_part;
    args.validate_only = true;
    const auto advice = Grant(args);
    ASSERT_TRUE(advice.ok()) << advice.status();
    EXPECT_EQ(3u, (*advice)->trees.size());
    args.validate_only = false;
    const auto batch = Grant(args);
    ASSERT_TRUE(batch.ok()) << batch.status();
    ASSERT_EQ(3u, (*batch)->trees.size());
    for (const BatchView::Tree& tree : (*batch)->trees) {
      EXPECT_EQ(RouteKind::kShortestPath, tree.view.route_kind);
      EXPECT_THAT(tree.view.record->reason, testing::EndsWith(kSaid));
    }
  }
  ExpectConserved();
  ASSERT_NO_FATAL_FAILURE(FindRoutes());
  EXPECT_EQ(6u, manager_->Counts().granted_trees);
  for (const TreeView& tree : manager_->ListTrees(job, TreeId(), 10)) ExpectRouted(tree.record->id);
}

// Links are what trees stand on: where these are missing nothing is granted.
TEST_F(UnroutedGrantsTest, WhatNoLinksJoinIsRefused) {
  Begin();
  ASSERT_NO_FATAL_FAILURE(SweepTo({.missing_cables = {{0, 0}, {0, 1}}}, {}));
  const auto tree = TreeOver(0, 7);
  EXPECT_TRUE(absl::IsFailedPrecondition(tree.status())) << tree.status();
  EXPECT_THAT(std::string(tree.status().message()), HasSubstr("no cable joins them"));
}

// Two readings alike, and no table leads over what is gone: who has no route now was given none.
TEST_F(UnroutedGrantsTest, SettledTablesHaveTheLastWord) {
  Begin();
  FabricShape nothing_routed;
  nothing_routed.missing_spines = {0, 1};
  ASSERT_NO_FATAL_FAILURE(SweepTo({}, nothing_routed));
  ASSERT_NO_FATAL_FAILURE(SweepTo({}, nothing_routed));
  ASSERT_TRUE(manager_->fabric()->routes_settled);
  const auto tree = TreeOver(0, 7);
  EXPECT_TRUE(absl::IsFailedPrecondition(tree.status())) << tree.status();
  const auto local = TreeOver(0, 3);
  EXPECT_TRUE(local.ok()) << local.status();
}

// The sweeping thread looks at such a tree again without waiting for a sweep.
TEST_F(UnroutedGrantsTest, ItIsJudgedAtOnce) {
  Begin();
  ASSERT_NO_FATAL_FAILURE(LoseRoutes());
  const auto tree = TreeOver(0, 7);
  ASSERT_TRUE(tree.ok()) << tree.status();
  // The same sweep publishes nothing new, but the tree is judged, and stands.
  ASSERT_TRUE(manager_->Sweep().ok());
  EXPECT_EQ(1u, manager_->GetTree(tree->record->id)->record->revision);
  ExpectAllStand(*manager_);
}

}  // namespace
}  // namespace coppice::unrouted_grants_test
