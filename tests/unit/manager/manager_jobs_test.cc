#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/manager_fixture.h"

namespace coppice::manager_jobs_test {
namespace {

using ::testing::HasSubstr;

class ManagerJobsTest : public ManagerTest {
 protected:
  void SetUp() override { Boot(); }
};

TEST_F(ManagerJobsTest, RegistersEndpointsInTheOrderGiven) {
  RegisterJobArgs args;
  args.endpoints = {"n3", "n1/1", "0000000000005002", "0x0000000000005002"};
  args.lease = absl::Seconds(90);
  const auto view = Register(args);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_THAT(view->record->endpoints,
              ::testing::ElementsAre(PortGuid(3), PortGuid(1), PortGuid(2), PortGuid(2)));
  EXPECT_EQ(absl::Seconds(90), view->lease_left);
  EXPECT_EQ(JobId(1), view->record->id);
  EXPECT_EQ(1u, manager_->Counts().active_jobs);
  EXPECT_EQ(1u, EventsOf("job.registered").size());
}

TEST_F(ManagerJobsTest, AllEndpointsComeByHostName) {
  const auto view = Register(AllHosts());
  ASSERT_TRUE(view.ok());
  ASSERT_EQ(16u, view->record->endpoints.size());
  EXPECT_EQ(PortGuid(0), view->record->endpoints[0]);
  EXPECT_EQ(PortGuid(1), view->record->endpoints[1]);
  EXPECT_EQ(PortGuid(10), view->record->endpoints[2]);  // n10 sorts before n2
}

TEST_F(ManagerJobsTest, RefusesBadRequestsAndNamesTheFault) {
  const auto refuse = [&](auto change, absl::StatusCode code, const char* what) {
    RegisterJobArgs args = AllHosts();
    change(args);
    const absl::Status status = Register(args).status();
    EXPECT_EQ(code, status.code()) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  };
  using Args = RegisterJobArgs;
  const auto kBad = absl::StatusCode::kInvalidArgument;
  refuse([](Args& a) { a.all_endpoints = false; }, kBad, "endpoints");
  refuse([](Args& a) { a.endpoints = {"n1"}; }, kBad, "not both");
  refuse([](Args& a) { a.request_id.assign(129, 'x'); }, kBad, "request_id");
  refuse([](Args& a) { a.display_name.assign(257, 'x'); }, kBad, "display_name");
  refuse([](Args& a) { a.owner.assign(257, 'x'); }, kBad, "owner");
  refuse([](Args& a) { a.lease = absl::ZeroDuration(); }, kBad, "lease");
  refuse([](Args& a) { a.lease = absl::Hours(25); }, kBad, "lease");
  refuse([](Args& a) { a.lease = absl::InfiniteDuration(); }, kBad, "lease");
  const auto named = [](std::vector<std::string> names) {
    return [names](Args& a) {
      a.all_endpoints = false;
      a.endpoints = names;
    };
  };
  refuse(named({"n1", ""}), kBad, "rank 1");
  refuse(named({"n1", "n77"}), absl::StatusCode::kNotFound, "n77");
  ManagerOptions options = Options();
  options.max_job_ranks = 15;
  Boot(options);
  refuse([](Args&) {}, kBad, "limits.job_ranks");
  refuse(named(std::vector<std::string>(16, "n1")), kBad, "limits.job_ranks");
  EXPECT_EQ(0u, manager_->Counts().active_jobs);
}

TEST_F(ManagerJobsTest, ARetryFindsTheFirstTry) {
  const auto first = Register(AllHosts("launch-7"));
  const auto second = Register(AllHosts("launch-7"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->record, second->record);
  RegisterJobArgs other = AllHosts("launch-7");
  other.display_name = "other";
  const absl::Status misuse = Register(other).status();
  EXPECT_TRUE(absl::IsAlreadyExists(misuse));
  EXPECT_THAT(std::string(misuse.message()),
              HasSubstr("request_id launch-7 was used with other content"));
}

TEST_F(ManagerJobsTest, ARetryWhileTheFirstIsUnderWayWaitsForIt) {
  store_.HoldBack();
  Answer<JobView> first, second;
  manager_->RegisterJob(AllHosts("x"), first.Callback());
  manager_->RegisterJob(AllHosts("x"), second.Callback());
  EXPECT_EQ(1u, store_.held());
  EXPECT_FALSE(second.answered());
  store_.LetGo();
  EXPECT_EQ(first.Get()->record, second.Get()->record);
  EXPECT_EQ(1u, manager_->Counts().active_jobs);
}

TEST_F(ManagerJobsTest, AFailedRegistrationFreesItsRequestId) {
  store_.Refuse<PutJob>(absl::UnavailableError("busy"));
  EXPECT_TRUE(absl::IsUnavailable(Register(AllHosts("x")).status()));
  EXPECT_EQ(0u, manager_->Counts().active_jobs);
  store_.Obey();
  EXPECT_TRUE(Register(AllHosts("x")).ok());
}

TEST_F(ManagerJobsTest, TheRequestIdOfAJobThatIsOverIsRefused) {
  const auto job = Register(AllHosts("x"));
  ASSERT_TRUE(End(job->record->id).ok());
  const absl::Status status = Register(AllHosts("x")).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
}

TEST_F(ManagerJobsTest, EndingReleasesTreesAndEndingAgainIsNothing) {
  const JobId job = NewJob();
  ASSERT_TRUE(Create(TreeOf(job)).ok());
  ASSERT_TRUE(Create(TreeOf(job, TreeType::kTypeI)).ok());
  EXPECT_EQ(2u, manager_->GetJob(job)->tree_count);
  EXPECT_EQ(2u, *End(job));
  EXPECT_EQ(0u, *End(job));
  EXPECT_EQ(0u, manager_->Counts().granted_trees);
  ExpectConserved();
  const auto view = manager_->GetJob(job);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(JobState::kEnded, view->record->state);
  EXPECT_EQ(JobState::kEnded, manager_->KeepAlive(job)->record->state);
  EXPECT_TRUE(absl::IsFailedPrecondition(Create(TreeOf(job)).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(manager_->AdviseTree(TreeOf(job)).status()));
}

TEST_F(ManagerJobsTest, UnknownJobsAreNotFound) {
  for (const JobId id : {JobId(0), JobId(-1), JobId(99)}) {
    EXPECT_TRUE(absl::IsNotFound(End(id).status()));
    EXPECT_TRUE(absl::IsNotFound(manager_->GetJob(id).status()));
    EXPECT_TRUE(absl::IsNotFound(manager_->KeepAlive(id).status()));
    EXPECT_TRUE(absl::IsNotFound(Create(TreeOf(id)).status()));
    EXPECT_TRUE(absl::IsNotFound(manager_->AdviseTree(TreeOf(id)).status()));
  }
}

TEST_F(ManagerJobsTest, AllExpiredLeasesGoAtOnceAndRenewedOnesStay) {
  std::vector<JobId> jobs;
  for (int i = 0; i < 5; ++i) {
    jobs.push_back(NewJob());
    ASSERT_TRUE(Create(TreeOf(jobs.back(), TreeType::kTypeI)).ok());
  }
  clock_.Advance(absl::Seconds(40));
  EXPECT_EQ(absl::Seconds(20), manager_->ExpireLeases());
  EXPECT_EQ(absl::Seconds(60), manager_->KeepAlive(jobs[2])->lease_left);
  clock_.Advance(absl::Seconds(20));
  EXPECT_EQ(absl::Seconds(40), manager_->ExpireLeases());
  Settle();
  EXPECT_EQ(1u, manager_->Counts().active_jobs);
  EXPECT_EQ(1u, manager_->Counts().granted_trees);
  EXPECT_EQ(JobState::kExpired, manager_->GetJob(jobs[0])->record->state);
  EXPECT_EQ(JobState::kExpired, manager_->KeepAlive(jobs[4])->record->state);
  EXPECT_EQ(4u, EventsOf("job.expired").size());
  EXPECT_TRUE(absl::IsFailedPrecondition(Create(TreeOf(jobs[0])).status()));
  ExpectConserved();
}

// As after SIGSTOP: no renewal could come in meanwhile.
TEST_F(ManagerJobsTest, AStallEndsNoLease) {
  RegisterJobArgs args = AllHosts();
  args.lease = absl::Hours(1);
  const JobId brief = NewJob(), lasting = Register(args)->record->id;
  clock_.Advance(absl::Minutes(59));
  manager_->ForgiveStall(absl::Minutes(59));
  manager_->ExpireLeases();
  Settle();
  EXPECT_EQ(absl::Seconds(60), manager_->GetJob(brief)->lease_left);
  EXPECT_EQ(absl::Hours(1), manager_->GetJob(lasting)->lease_left);
  ASSERT_EQ(1u, EventsOf("daemon.stalled").size());
  EXPECT_NE(std::string::npos, EventsOf("daemon.stalled")[0].message.find("3540.0 s"));
  clock_.Advance(absl::Seconds(60));
  manager_->ForgiveStall(absl::Milliseconds(999));  // as any machine may be late
  manager_->ExpireLeases();
  Settle();
  EXPECT_EQ(JobState::kExpired, manager_->GetJob(brief)->record->state);
  EXPECT_EQ(1u, EventsOf("daemon.stalled").size());
}

TEST_F(ManagerJobsTest, AStepOfTheWallClockExpiresNothing) {
  const JobId job = NewJob();
  clock_.StepWallClock(absl::Hours(100));
  manager_->ExpireLeases();
  Settle();
  EXPECT_EQ(JobState::kActive, manager_->GetJob(job)->record->state);
}

TEST_F(ManagerJobsTest, AnExpiryThatCannotBeWrittenIsTriedAgain) {
  const JobId job = NewJob();
  clock_.Advance(absl::Seconds(61));
  store_.Refuse<EndJob>(absl::UnavailableError("busy"));
  manager_->ExpireLeases();
  Settle();
  EXPECT_EQ(1u, manager_->Counts().active_jobs);
  store_.Obey();
  EXPECT_EQ(absl::Seconds(1), manager_->ExpireLeases());
  clock_.Advance(absl::Seconds(1));
  manager_->ExpireLeases();
  Settle();
  EXPECT_EQ(0u, manager_->Counts().active_jobs);
  EXPECT_EQ(JobState::kExpired, manager_->GetJob(job)->record->state);
}

TEST_F(ManagerJobsTest, ListsActiveJobsById) {
  const JobId first = NewJob(), second = NewJob(), third = NewJob();
  ASSERT_TRUE(End(second).ok());
  const auto all = manager_->ListJobs(JobId(), 10);
  ASSERT_EQ(2u, all.size());
  EXPECT_EQ(first, all[0].record->id);
  EXPECT_EQ(third, all[1].record->id);
  EXPECT_EQ(third, manager_->ListJobs(first, 10)[0].record->id);
  EXPECT_EQ(1u, manager_->ListJobs(JobId(), 1).size());
}

TEST_F(ManagerJobsTest, TheThreadEndsLeasesByTheRealClock) {
  manager_.reset();
  ManagerOptions options = Options();
  options.min_lease = absl::Milliseconds(1);
  auto made = Manager::Create(&store_, &port_, &SystemClock(), options);
  ASSERT_TRUE(made.ok());
  manager_ = *std::move(made);
  ASSERT_TRUE(manager_->Sweep().ok());
  manager_->Start();
  RegisterJobArgs args = AllHosts();
  args.lease = absl::Milliseconds(5);
  std::mutex mu;
  std::condition_variable changed;
  bool ended = false;
  // The event is submitted by the callback of the end, after the tables changed.
  store_.RefuseWhere([&](const Mutation& mutation) {
    const auto* append = std::get_if<AppendEvents>(&mutation);
    if (append != nullptr && append->events.at(0).kind == "job.expired") {
      std::lock_guard lock(mu);
      ended = true;
      changed.notify_all();
    }
    return absl::OkStatus();
  });
  const auto job = Register(args);
  ASSERT_TRUE(job.ok()) << job.status();
  {
    std::unique_lock lock(mu);
    changed.wait(lock, [&] { return ended; });
  }
  EXPECT_EQ(JobState::kExpired, manager_->GetJob(job->record->id)->record->state);
  manager_->Stop();
  manager_.reset();
}

TEST_F(ManagerJobsTest, JobsThatEndedLongAgoAreForgottenWithTheirNames) {
  ManagerOptions options = Options();
  options.kept_ended_jobs = 2;
  Boot(options);
  std::vector<JobId> jobs;
  for (int i = 0; i < 4; ++i) {
    const auto job = Register(AllHosts("launch-" + std::to_string(i)));
    ASSERT_TRUE(job.ok()) << job.status();
    jobs.push_back(job->record->id);
    clock_.Advance(absl::Seconds(1));
    ASSERT_TRUE(End(jobs.back()).ok());
  }
  // Until then the name leads to the job that is over.
  EXPECT_TRUE(absl::IsAlreadyExists(Register(AllHosts("launch-0")).status()));
  manager_->FlushActivity();
  Settle();
  for (const JobId id : {jobs[0], jobs[1]}) {
    const absl::Status gone = manager_->GetJob(id).status();
    EXPECT_TRUE(absl::IsNotFound(gone)) << gone;
    EXPECT_THAT(std::string(gone.message()), HasSubstr("limits.ended_jobs"));
    EXPECT_TRUE(absl::IsNotFound(manager_->KeepAlive(id).status()));
    EXPECT_TRUE(absl::IsNotFound(Create(TreeOf(id)).status()));
    EXPECT_TRUE(absl::IsNotFound(End(id).status()));
  }
  EXPECT_EQ(JobState::kEnded, manager_->GetJob(jobs[2])->record->state);
  const auto again = Register(AllHosts("launch-0"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_GT(again->record->id, jobs[3]);
  EXPECT_TRUE(absl::IsAlreadyExists(Register(AllHosts("launch-3")).status()));
}

TEST_F(ManagerJobsTest, EventsAreNeverMoreThanAreKept) {
  ManagerOptions options = Options();
  options.kept_events = 10;
  Boot(options);
  for (int i = 0; i < 50; ++i) manager_->Announce("sm.found", "fabric", "words");
  Settle();
  EXPECT_EQ(10u, manager_->Events({})->size());
}

}  // namespace
}  // namespace coppice::manager_jobs_test
