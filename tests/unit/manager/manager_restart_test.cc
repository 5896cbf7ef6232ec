// A manager made anew over the same store carries on where the last one stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/manager_fixture.h"

namespace coppice::manager_restart_test {
namespace {

class ManagerRestartTest : public ManagerTest {};

TEST_F(ManagerRestartTest, JobsTreesAndEntriesAreThereAtOnce) {
  Boot();
  const auto job = Register(AllHosts("launch"));
  CreateTreeArgs args = TreeOf(job->record->id);
  args.request_id = "world";
  const auto tree = Create(args);
  ASSERT_TRUE(tree.ok());
  clock_.Advance(absl::Seconds(59));

  Boot(Options(), false);  // no sweep yet
  EXPECT_EQ(1u, manager_->Counts().active_jobs);
  EXPECT_EQ(1u, manager_->Counts().granted_trees);
  EXPECT_EQ(tree->record->switches.size(), manager_->Counts().entries_taken);
  EXPECT_EQ(*tree->record, *manager_->GetTree(tree->record->id)->record);
  EXPECT_EQ(absl::Seconds(60), manager_->GetJob(job->record->id)->lease_left);  // starts anew
  EXPECT_EQ(*job->record, *manager_->GetJob(job->record->id)->record);

  ASSERT_TRUE(manager_->Sweep().ok());
  ExpectConserved();
  // Retries of both requests find what they created.
  EXPECT_EQ(job->record->id, Register(AllHosts("launch"))->record->id);
  EXPECT_EQ(tree->record->id, Create(args)->record->id);
  CreateTreeArgs other = args;
  other.ranks = {1, 2};
  EXPECT_TRUE(absl::IsAlreadyExists(Create(other).status()));
  // Ids go on.
  EXPECT_EQ(JobId(2), NewJob());
  EXPECT_EQ(TreeId(2), Create(TreeOf(job->record->id))->record->id);
  EXPECT_EQ(2u, *End(job->record->id));
  ExpectConserved();
}

TEST_F(ManagerRestartTest, TreesWhoseMembersWentAwayMeanwhileAreRevoked) {
  Boot();
  const JobId job = NewJob();
  const auto tree = Create(TreeOf(job));
  ASSERT_TRUE(tree.ok());
  port_.Set(SmallFabric({.leaves = 1, .spines = 0}));
  Boot();
  EXPECT_TRUE(absl::IsNotFound(manager_->GetTree(tree->record->id).status()));
  EXPECT_EQ(0u, manager_->Counts().entries_taken);
  EXPECT_TRUE(manager_->TreesOfSwitch(tree->record->switches[0].guid).empty());
  EXPECT_TRUE(absl::IsFailedPrecondition(Create(TreeOf(job)).status()));
  EXPECT_EQ(0u, *End(job));
  ExpectConserved();
}

TEST_F(ManagerRestartTest, FewerEntriesThanAreTakenLoseNoTree) {
  Boot(Options(4));
  const JobId job = NewJob();
  std::vector<TreeId> trees;
  for (int i = 0; i < 3; ++i) trees.push_back(Create(TreeOf(job))->record->id);
  Boot(Options(1));
  EXPECT_EQ(3u, manager_->Counts().granted_trees);
  ExpectConserved();
  for (const TreeId id : trees) EXPECT_TRUE(Release(id).ok());
  ExpectConserved();
}

TEST_F(ManagerRestartTest, TheRequestIdOfAJobThatEndedBeforeIsRefused) {
  Boot();
  ASSERT_TRUE(End(Register(AllHosts("launch"))->record->id).ok());
  Boot();
  EXPECT_TRUE(absl::IsAlreadyExists(Register(AllHosts("launch")).status()));
}

TEST_F(ManagerRestartTest, AnEndedJobIsStillKnown) {
  Boot();
  const JobId job = NewJob();
  ASSERT_TRUE(End(job).ok());
  Boot();
  EXPECT_EQ(JobState::kEnded, manager_->GetJob(job)->record->state);
  EXPECT_EQ(0u, *End(job));
}

}  // namespace
}  // namespace coppice::manager_restart_test
