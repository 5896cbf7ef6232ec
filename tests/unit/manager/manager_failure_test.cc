// What happens when the store refuses, and when the world moves between planning and commit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/manager_fixture.h"

namespace coppice::manager_failure_test {
namespace {

class ManagerFailureTest : public ManagerTest {
 protected:
  void SetUp() override {
    Boot();
    job_ = NewJob();
  }
  JobId job_;
};

TEST_F(ManagerFailureTest, AFailedGrantGivesItsReservationBack) {
  CreateTreeArgs args = TreeOf(job_);
  args.request_id = "x";
  store_.Refuse<GrantTree>(absl::UnavailableError("disk is busy"));
  EXPECT_TRUE(absl::IsUnavailable(Create(args).status()));
  EXPECT_EQ(0u, manager_->Counts().entries_taken);
  EXPECT_EQ(0u, manager_->GetJob(job_)->tree_count);
  ExpectConserved();
  store_.Obey();
  EXPECT_TRUE(Create(args).ok());  // the request_id is free again
  ExpectConserved();
}

// The manager hears of a switch that left a moment after the store did.
TEST_F(ManagerFailureTest, ASwitchThatLeavesDuringPlanningIsAMoveOfTheFabric) {
  store_.HoldBack();
  auto grant = StartCreate(TreeOf(job_));
  ASSERT_TRUE(kept_.Apply(PutCapabilities{}).ok());
  store_.LetGo();
  const absl::Status refused = grant.Get().status();
  EXPECT_TRUE(absl::IsAborted(refused)) << refused;
  EXPECT_EQ(0u, manager_->Counts().entries_taken);
}

TEST_F(ManagerFailureTest, WaitersShareTheFailure) {
  CreateTreeArgs args = TreeOf(job_);
  args.request_id = "x";
  store_.HoldBack();
  auto first = StartCreate(args), second = StartCreate(args);
  store_.Refuse<GrantTree>(absl::UnavailableError("disk is busy"));
  store_.LetGo();
  EXPECT_TRUE(absl::IsUnavailable(first.Get().status()));
  EXPECT_TRUE(absl::IsUnavailable(second.Get().status()));
  ExpectConserved();
}

TEST_F(ManagerFailureTest, AFailedReleaseLeavesTheTreeGranted) {
  const TreeId id = Create(TreeOf(job_))->record->id;
  store_.Refuse<ReleaseTree>(absl::UnavailableError("disk is busy"));
  EXPECT_TRUE(absl::IsUnavailable(Release(id).status()));
  EXPECT_TRUE(manager_->GetTree(id).ok());
  ExpectConserved();
  store_.Obey();
  EXPECT_TRUE(Release(id).ok());
  ExpectConserved();
}

TEST_F(ManagerFailureTest, AFailedEndLeavesTheJobActive) {
  ASSERT_TRUE(Create(TreeOf(job_)).ok());
  store_.Refuse<EndJob>(absl::UnavailableError("disk is busy"));
  EXPECT_TRUE(absl::IsUnavailable(End(job_).status()));
  EXPECT_EQ(JobState::kActive, manager_->GetJob(job_)->record->state);
  EXPECT_TRUE(Create(TreeOf(job_)).ok());
  ExpectConserved();
  store_.Obey();
  EXPECT_EQ(2u, *End(job_));
  ExpectConserved();
}

TEST_F(ManagerFailureTest, AnEndThatTheStoreHadAlreadyWrittenIsAnEnd) {
  ASSERT_TRUE(Create(TreeOf(job_)).ok());
  // The write was reported as failed though it had reached the disk.
  store_.RefuseWhere([&](const Mutation& mutation) {
    if (!std::holds_alternative<EndJob>(mutation)) return absl::OkStatus();
    kept_.Submit(mutation, [](absl::Status) {});
    return absl::UnavailableError("lost the answer");
  });
  EXPECT_TRUE(absl::IsUnavailable(End(job_).status()));
  store_.Obey();
  EXPECT_TRUE(End(job_).ok());
  EXPECT_EQ(0u, manager_->Counts().active_jobs);
  ExpectConserved();
}

TEST_F(ManagerFailureTest, AGrantBeforeTheEndOfItsJobGoesWithIt) {
  store_.HoldBack();
  auto grant = StartCreate(TreeOf(job_));
  auto end = StartEnd(job_);
  EXPECT_TRUE(absl::IsFailedPrecondition(Create(TreeOf(job_)).status()));  // it is ending
  store_.LetGo();
  EXPECT_TRUE(grant.Get().ok());
  EXPECT_EQ(1u, *end.Get());
  EXPECT_EQ(0u, manager_->Counts().granted_trees);
  EXPECT_EQ(0u, manager_->Counts().entries_taken);
  ExpectConserved();
}

TEST_F(ManagerFailureTest, AGrantThatReachesTheStoreAfterTheEndIsRefusedAndLeaksNothing) {
  store_.HoldBack();
  auto grant = StartCreate(TreeOf(job_));
  // Someone ends the job in the store before the grant arrives.
  ASSERT_TRUE(kept_.Apply(EndJob{job_, JobState::kEnded, clock_.Now()}).ok());
  store_.LetGo();
  EXPECT_TRUE(absl::IsFailedPrecondition(grant.Get().status()));
  EXPECT_EQ(0u, manager_->Counts().entries_taken);
  ASSERT_TRUE(End(job_).ok());
  ExpectConserved();
}

TEST_F(ManagerFailureTest, EndsAtTheSameTimeAreOneEnd) {
  ASSERT_TRUE(Create(TreeOf(job_)).ok());
  store_.HoldBack();
  auto first = StartEnd(job_), second = StartEnd(job_);
  clock_.Advance(absl::Hours(1));
  manager_->ExpireLeases();
  EXPECT_EQ(1u, store_.held());
  store_.LetGo();
  EXPECT_EQ(1u, *first.Get());
  EXPECT_EQ(1u, *second.Get());
  EXPECT_EQ(JobState::kEnded, manager_->GetJob(job_)->record->state);
}

TEST_F(ManagerFailureTest, ALateRenewalDoesNotReviveAJobThatIsEnding) {
  store_.HoldBack();
  clock_.Advance(absl::Seconds(61));
  manager_->ExpireLeases();
  EXPECT_EQ(absl::ZeroDuration(), manager_->KeepAlive(job_)->lease_left);
  store_.LetGo();
  Settle();
  EXPECT_EQ(JobState::kExpired, manager_->KeepAlive(job_)->record->state);
}

TEST_F(ManagerFailureTest, EntriesInFlightCannotBePlannedTwice) {
  Boot(Options(1));
  job_ = NewJob();
  store_.HoldBack();
  std::vector<Answer<TreeView>> grants;
  for (int i = 0; i < 8; ++i) grants.push_back(StartCreate(TreeOf(job_)));
  store_.LetGo();
  int granted = 0;
  for (Answer<TreeView>& grant : grants) {
    const auto view = grant.Get();
    if (view.ok()) {
      ++granted;
    } else {
      EXPECT_TRUE(absl::IsResourceExhausted(view.status())) << view.status();
    }
  }
  EXPECT_GE(granted, 1);
  ExpectConserved();
}

// The manager stamps a tree after planning and before reserving: a clock that acts when it is asked
// stands for whatever moves in between.
class BusyClock final : public Clock {
 public:
  absl::Time Now() const override {
    const std::function<void()> act = on_now;  // a copy, since it may replace itself
    if (act) act();
    return absl::UnixEpoch();
  }
  absl::Duration Monotonic() const override { return absl::ZeroDuration(); }
  std::function<void()> on_now;
};

TEST_F(ManagerFailureTest, AStalePlanIsMadeAgainAndAbortedIfItNeverHolds) {
  BusyClock busy;
  manager_ = *Manager::Create(&store_, &port_, &busy, Options());
  ASSERT_TRUE(manager_->Sweep().ok());
  int moves = 0, most = 1;
  const std::function<void()> move = [&] {
    if (moves == most) return;
    busy.on_now = nullptr;  // the sweep asks the clock, too
    port_.Set(SmallFabric({.missing_hosts = {moves++ % 2 == 0 ? 15u : 14u}}));
    EXPECT_TRUE(manager_->Sweep().ok());
    busy.on_now = move;
  };
  CreateTreeArgs args = TreeOf(job_);
  args.ranks = {0, 1, 2};
  busy.on_now = move;
  const auto view = Create(args);
  busy.on_now = nullptr;
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(1, moves);
  EXPECT_EQ(manager_->fabric()->snapshot->fabric->version(), view->record->fabric_version);

  most = 1000;
  busy.on_now = move;
  const absl::Status aborted = Create(args).status();
  busy.on_now = nullptr;
  EXPECT_TRUE(absl::IsAborted(aborted)) << aborted;
  ExpectConserved();
  manager_.reset();
}

TEST_F(ManagerFailureTest, DestructionWaitsForTheStore) {
  store_.HoldBack();
  auto grant = StartCreate(TreeOf(job_));
  store_.LetGo();
  manager_.reset();
  EXPECT_TRUE(grant.answered());
}

}  // namespace
}  // namespace coppice::manager_failure_test
