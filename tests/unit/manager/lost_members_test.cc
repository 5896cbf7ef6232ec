// Jobs whose hosts go and come back; hosts that may only be hidden.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/manager/rounds.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice::lost_members_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LostMembersTest : public ManagerTest {
 protected:
  void SweepTo(const FabricShape& shape, std::vector<UnansweredNode> unanswered = {}) {
    SweepResult result;
    result.fabric = SmallFabric(shape);
    result.unanswered = std::move(unanswered);
    port_.Set(absl::StatusOr<SweepResult>(std::move(result)));
    const auto swept = manager_->Sweep();
    ASSERT_TRUE(swept.ok()) << swept.status();
    ExpectConserved();
  }
  std::vector<uint32_t> Lost(JobId job) {
    const absl::StatusOr<JobView> view = manager_->GetJob(job);
    EXPECT_TRUE(view.ok()) << view.status();
    return view.ok() ? view->lost_ranks : std::vector<uint32_t>();
  }
  static UnansweredNode SilentLeaf(uint32_t leaf, uint32_t spine) {
    return {"0,1", SpineGuid(spine), PortNum(static_cast<uint8_t>(leaf + 1)), "NodeInfo"};
  }
};

TEST_F(LostMembersTest, AHostThatGoesIsNamedAndItsTreesAreRevoked) {
  Boot(Options(5, 7));
  const JobId job = NewJob();
  const auto tree = Create(TreeOf(job));
  ASSERT_TRUE(tree.ok()) << tree.status();
  CreateTreeArgs part = TreeOf(job);
  part.ranks = {0, 1, 4};
  const auto other = Create(part);
  const std::vector<Guid> ports = manager_->GetJob(job)->record->endpoints;
  const auto rank =
      static_cast<uint32_t>(std::find(ports.begin(), ports.end(), PortGuid(13)) - ports.begin());
  SweepTo({.missing_hosts = {13}});
  EXPECT_THAT(Lost(job), ElementsAre(rank));
  EXPECT_THAT(manager_->ListJobs(JobId(), 10).at(0).lost_ranks, ElementsAre(rank));
  EXPECT_TRUE(absl::IsNotFound(manager_->GetTree(tree->record->id).status()));
  EXPECT_TRUE(manager_->GetTree(other->record->id).ok());
  const auto lost = EventsOf("job.member_lost");
  ASSERT_EQ(1u, lost.size());
  EXPECT_EQ("error", lost[0].severity);
  EXPECT_THAT(lost[0].object, HasSubstr("job:"));
  EXPECT_THAT(lost[0].message, HasSubstr("rank " + std::to_string(rank) + " (host n13, port " +
                                         ToString(PortGuid(13))));
  EXPECT_TRUE(absl::IsFailedPrecondition(Create(TreeOf(job)).status()));
  SweepTo({.missing_hosts = {13}, .missing_cables = {{0, 1}}});
  EXPECT_EQ(1u, EventsOf("job.member_lost").size());
  SweepTo({});
  EXPECT_THAT(Lost(job), IsEmpty());
  const auto back = EventsOf("job.member_back");
  ASSERT_EQ(1u, back.size());
  EXPECT_THAT(back[0].message, HasSubstr("host n13"));
  EXPECT_TRUE(Create(TreeOf(job)).ok());
}

TEST_F(LostMembersTest, AJobThatLosesAllEndsByItsLeaseOnly) {
  Boot();
  RegisterJobArgs args;
  args.endpoints = {ToString(PortGuid(2)), ToString(PortGuid(3))};
  const auto job = Register(args);
  SweepTo({.missing_hosts = {2, 3}});
  EXPECT_THAT(Lost(job->record->id), ElementsAre(0, 1));
  EXPECT_EQ(JobState::kActive, manager_->GetJob(job->record->id)->record->state);
  clock_.Advance(absl::Minutes(2));
  manager_->ExpireLeases();
  Settle();
  EXPECT_EQ(JobState::kExpired, manager_->GetJob(job->record->id)->record->state);
}

// Leaf 1 fell silent half way: it is there, and n6 and n7 may be.
TEST_F(LostMembersTest, WhatASwitchThatAnswersInPartDidNotTellIsHidden) {
  Boot(Options(5, 7));
  const JobId job = NewJob();
  const auto tree = Create(TreeOf(job));
  ASSERT_TRUE(tree.ok()) << tree.status();
  const UnansweredNode silent{"0,1", PortGuid(4), PortNum(1), "PortInfo of port 5", LeafGuid(1)};
  SweepTo({.missing_hosts = {6, 7}}, {silent});
  EXPECT_THAT(Lost(job), IsEmpty());
  EXPECT_TRUE(manager_->GetTree(tree->record->id).ok());
  UnansweredNode refused = silent;
  refused.is_silent = false;
  SweepTo({.missing_hosts = {6, 7}}, {refused});
  EXPECT_EQ(2u, Lost(job).size());
  EXPECT_TRUE(absl::IsNotFound(manager_->GetTree(tree->record->id).status()));
}

// At the first sweep anything may be hidden, but not for as long as anything is silent.
TEST_F(LostMembersTest, AfterPatienceALossBesidesASilentNodeIsCertain) {
  Boot(Options(5, 7), /*sweep=*/false);
  SweepTo({}, {SilentLeaf(7, 0)});
  const JobId job = NewJob();
  SweepTo({.missing_hosts = {4}}, {SilentLeaf(7, 0)});
  EXPECT_THAT(Lost(job), IsEmpty());
  SweepTo({}, {SilentLeaf(7, 0)});
  clock_.Advance(absl::Seconds(30));
  SweepTo({}, {SilentLeaf(7, 0)});
  const auto tree = Create(TreeOf(job));
  ASSERT_TRUE(tree.ok()) << tree.status();
  SweepTo({.missing_hosts = {4}}, {SilentLeaf(7, 0)});
  EXPECT_EQ(1u, Lost(job).size());
  EXPECT_TRUE(absl::IsNotFound(manager_->GetTree(tree->record->id).status()));
}

TEST_F(LostMembersTest, WhatIsHiddenIsGivenTimeAndWhatIsGoneIsNot) {
  Boot(Options(5, 7));
  const JobId job = NewJob();
  CreateTreeArgs behind = TreeOf(job), gone = TreeOf(job);
  const std::vector<Guid> ports = manager_->GetJob(job)->record->endpoints;
  const auto rank_of = [&](uint32_t host) {
    return static_cast<uint32_t>(std::find(ports.begin(), ports.end(), PortGuid(host)) -
                                 ports.begin());
  };
  behind.ranks = {rank_of(0), rank_of(4)};
  gone.ranks = {rank_of(0), rank_of(9)};
  const auto hidden_tree = Create(behind), lost_tree = Create(gone);
  ASSERT_TRUE(hidden_tree.ok() && lost_tree.ok());
  // Leaf 1 does not answer and hides n4 to n7; leaf 2 does, and n9 is not there.
  const FabricShape seen{.missing_hosts = {4, 5, 6, 7, 9}, .missing_cables = {{1, 0}, {1, 1}}};
  for (int sweep = 0; sweep < 2; ++sweep) {
    SweepTo(seen, {SilentLeaf(1, 0), SilentLeaf(1, 1)});
    EXPECT_THAT(Lost(job), ElementsAre(rank_of(9)));
    EXPECT_TRUE(manager_->GetTree(hidden_tree->record->id).ok());
    EXPECT_TRUE(absl::IsNotFound(manager_->GetTree(lost_tree->record->id).status()));
    clock_.Advance(absl::Seconds(10));
  }
  clock_.Advance(absl::Seconds(10));
  SweepTo(seen, {SilentLeaf(1, 0), SilentLeaf(1, 1)});
  EXPECT_EQ(5u, Lost(job).size());
  EXPECT_TRUE(absl::IsNotFound(manager_->GetTree(hidden_tree->record->id).status()));
  SweepTo({});
  EXPECT_THAT(Lost(job), IsEmpty());
}

TEST_F(LostMembersTest, ARestartFindsThemAgain) {
  Boot();
  const JobId job = NewJob();
  port_.Set(SmallFabric({.missing_hosts = {1}}));
  Boot(Options());
  EXPECT_EQ(1u, Lost(job).size());
  EXPECT_EQ(1u, EventsOf("job.member_lost").size());
}

}  // namespace
}  // namespace coppice::lost_members_test
