#include <gtest/gtest.h>

#include "daemon/manager/tables.h"

namespace coppice::job_table_test {
namespace {

std::shared_ptr<Job> JobUntil(int64_t id, absl::Duration deadline) {
  auto record = std::make_shared<JobRecord>();
  record->id = JobId(id);
  auto job = std::make_shared<Job>();
  job->record = record;
  job->deadline = deadline;
  return job;
}

TEST(JobTableTest, DeadlinesComeInOrderWhateverTheOrderOfRegistration) {
  JobTable table;
  for (const int seconds : {30, 10, 20}) table.Add(JobUntil(seconds, absl::Seconds(seconds)));
  EXPECT_EQ(absl::Seconds(10), table.NextDeadline());
  EXPECT_TRUE(table.TakeExpired(absl::Seconds(9)).empty());
  EXPECT_EQ(2u, table.TakeExpired(absl::Seconds(20)).size());
  EXPECT_EQ(absl::Seconds(30), table.NextDeadline());
}

TEST(JobTableTest, ARenewedLeaseIsQueuedAgainAndNotTaken) {
  JobTable table;
  const auto job = JobUntil(1, absl::Seconds(10));
  table.Add(job);
  job->deadline = absl::Seconds(50);
  EXPECT_TRUE(table.TakeExpired(absl::Seconds(10)).empty());
  EXPECT_EQ(absl::Seconds(50), table.NextDeadline());
  EXPECT_EQ(1u, table.TakeExpired(absl::Seconds(50)).size());
}

TEST(JobTableTest, AJobIsTakenOnceUntilItIsQueuedAgain) {
  JobTable table;
  const auto job = JobUntil(1, absl::Seconds(10));
  table.Add(job);
  EXPECT_EQ(1u, table.TakeExpired(absl::Seconds(10)).size());
  EXPECT_TRUE(job->ending);
  EXPECT_TRUE(table.TakeExpired(absl::Seconds(99)).empty());
  job->ending = false;
  table.Requeue(*job, absl::Seconds(100));
  EXPECT_EQ(1u, table.TakeExpired(absl::Seconds(100)).size());
}

TEST(JobTableTest, AJobThatLeavesIsForgottenByTheQueue) {
  JobTable table;
  const auto job = JobUntil(1, absl::Seconds(10));
  table.Add(job);
  table.Remove(*job);
  EXPECT_EQ(absl::InfiniteDuration(), table.NextDeadline());
  EXPECT_EQ(nullptr, table.Find(JobId(1)));
  EXPECT_EQ(0u, table.size());
}

TEST(JobTableTest, WhoFollowsHearsWhatCameAndWhatWent) {
  JobTable table;
  const auto ids = [](const JobTable::Changes& changes) {
    std::vector<int64_t> all;
    for (const auto& [id, record] : changes.added) all.push_back(id.value());
    for (const JobId id : changes.removed) all.push_back(-id.value());
    return all;
  };
  std::vector<std::shared_ptr<Job>> jobs;
  for (int64_t id = 1; id <= 4; ++id) jobs.push_back(JobUntil(id, absl::Seconds(id)));
  table.Add(jobs[0]);
  EXPECT_TRUE(table.TakeChanges(false).is_all);
  table.Add(jobs[2]);
  table.Add(jobs[1]);
  table.Remove(*jobs[0]);
  table.Remove(*jobs[2]);
  const JobTable::Changes changes = table.TakeChanges(false);
  EXPECT_FALSE(changes.is_all);
  EXPECT_EQ(ids(changes), (std::vector<int64_t>{2, -1, -3}));
  table.Add(jobs[3]);
  EXPECT_EQ(ids(table.TakeChanges(true)), (std::vector<int64_t>{2, 4}));
}

TEST(JobTableTest, NobodyWhoFollowsKeepsTheRanksOfAJobThatWent) {
  JobTable table;
  table.TakeChanges(true);
  auto job = JobUntil(1, absl::Seconds(1));
  const std::weak_ptr<const JobRecord> record = job->record;
  table.Add(job);
  table.Remove(*job);
  job.reset();
  EXPECT_TRUE(record.expired());
}

}  // namespace
}  // namespace coppice::job_table_test
