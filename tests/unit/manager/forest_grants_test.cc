// Forests are granted, kept, planned anew and released as one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "db/json_lists.h"
#include "tests/unit/manager/manager_fixture.h"
#include "tests/unit/manager/standing_trees.h"

namespace coppice::forest_grants_test {
namespace {

using testing::HasSubstr;

class ForestGrantsTest : public ManagerTest {
 protected:
  CreateTreeArgs ForestOf(JobId job, uint32_t max_trees) {
    CreateTreeArgs args = TreeOf(job);
    args.type.reset();
    args.operation = Operation::kAllreduce;
    args.sizes = {{4 << 20, 1}};
    args.max_trees = max_trees;
    return args;
  }
  void ExpectForest(const TreeRecord& record, uint32_t max_trees) {
    ASSERT_GT(record.forest.size(), 1U);
    EXPECT_LE(record.forest.size(), max_trees);
    EXPECT_EQ(record.forest[0].parents, record.parents);
    double shares = 0;
    for (const ForestTreeRecord& one : record.forest) {
      shares += one.share;
      EXPECT_EQ(std::count(one.parents.begin(), one.parents.end(), -1), 1);
      EXPECT_EQ(one.parents.size(), record.ranks.size());
    }
    EXPECT_NEAR(shares, 1, 1e-9);
    EXPECT_EQ(record.type, 1);
    EXPECT_EQ(record.builder, "forest");
    EXPECT_TRUE(record.switches.empty());
  }
};

TEST_F(ForestGrantsTest, IsDurableAndOneGrant) {
  Boot();
  const JobId job = NewJob();
  CreateTreeArgs args = ForestOf(job, 16);
  args.request_id = "long";
  const auto forest = Create(args);
  ASSERT_TRUE(forest.ok()) << forest.status();
  ExpectForest(*forest->record, 16);
  EXPECT_GT(forest->busiest.us, 0);
  EXPECT_EQ(*forest->record, kept_.Load()->trees.at(0));
  EXPECT_EQ(manager_->Counts().granted_trees, 1U);
  const auto again = Create(args);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->record, forest->record);
  args.max_trees = 4;
  EXPECT_EQ(Create(args).status().code(), absl::StatusCode::kAlreadyExists);
  Boot();
  const auto kept = manager_->GetTree(forest->record->id);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(*kept->record, *forest->record);
  EXPECT_NEAR(kept->busiest.us, forest->busiest.us, 1e-9);
  EXPECT_TRUE(Release(forest->record->id).ok());
  EXPECT_EQ(manager_->Counts().granted_trees, 0U);
}

TEST_F(ForestGrantsTest, WithoutTheFieldThereIsOneTree) {
  Boot();
  CreateTreeArgs args = ForestOf(NewJob(), 16);
  args.max_trees.reset();
  const auto tree = Create(args);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_TRUE(tree->record->forest.empty());
  args.max_trees = 16;
  const auto forest = Create(args);
  ASSERT_TRUE(forest.ok()) << forest.status();
  EXPECT_LT(forest->record->total_us, tree->record->total_us);
}

TEST_F(ForestGrantsTest, IsOverRanksWhereNoSwitchSpeaks) {
  Boot();
  CreateTreeArgs args = ForestOf(NewJob(), 16);
  args.carried = true;
  const auto forest = Create(args);
  ASSERT_TRUE(forest.ok()) << forest.status();
  ExpectForest(*forest->record, 16);
}

TEST_F(ForestGrantsTest, IsPlannedAnewAsOne) {
  Boot();
  const auto forest = Create(ForestOf(NewJob(), 8));
  ASSERT_TRUE(forest.ok()) << forest.status();
  port_.Set(SmallFabric({.missing_spines = {0}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  const auto now = manager_->GetTree(forest->record->id);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(now->record->revision, 2U);
  ExpectForest(*now->record, 8);
  EXPECT_EQ(*now->record, kept_.Load()->trees.at(0));
  ExpectConserved();
}

TEST_F(ForestGrantsTest, LosesAMemberAndIsRevoked) {
  Boot();
  const auto forest = Create(ForestOf(NewJob(), 8));
  ASSERT_TRUE(forest.ok()) << forest.status();
  port_.Set(SmallFabric({.missing_hosts = {3}}));
  ASSERT_TRUE(manager_->Sweep().ok());
  EXPECT_EQ(manager_->Counts().granted_trees, 0U);
}

TEST_F(ForestGrantsTest, RefusesWhatForestsAreNotFor) {
  Boot();
  const JobId job = NewJob();
  const auto expect_error = [&](const CreateTreeArgs& args, const std::string& words) {
    const auto refused = Create(args);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument) << refused.status();
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(words));
  };
  CreateTreeArgs args = ForestOf(job, 65);
  expect_error(args, "max_trees");
  args = ForestOf(job, 8);
  args.type = TreeType::kTypeII;
  expect_error(args, "of type I");
  args = ForestOf(job, 8);
  args.operation = Operation::kReduce;
  expect_error(args, "allreduce");
}

}  // namespace
}  // namespace coppice::forest_grants_test
