// Old events and jobs: by number at once, by age only under a clock that goes evenly.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "daemon/manager/background.h"
#include "tests/unit/manager/manager_fixture.h"

namespace coppice::pruning_test {
namespace {

class TurnedClock final : public Clock {
 public:
  absl::Time Now() const override { return wall; }
  absl::Duration Monotonic() const override { return monotonic; }
  void Pass(absl::Duration time) {
    wall += time;
    monotonic += time;
  }

  absl::Time wall = absl::FromUnixSeconds(1'700'000'000);
  absl::Duration monotonic = absl::Seconds(50);
};

class PruningTest : public testing::Test {
 protected:
  void Append(int count) {
    AppendEvents append;
    for (int i = 0; i < count; ++i) {
      append.events.push_back({0, clock_.wall, "info", "test.event", "fabric", "words"});
    }
    ASSERT_TRUE(store_.Apply(append).ok());
  }
  int64_t Kept() {
    const EventRange range = *store_.KeptEvents();
    return range.newest - range.oldest + 1;
  }
  void Run(int64_t keep, absl::Duration age = absl::Hours(24)) {
    pruning_.Run({keep, age}, {keep, age});
    calls_.AwaitAll();
  }
  // Jobs from `first` on that end as they come, each a second after the one before.
  void EndJobs(int64_t first, int64_t count, const std::string& owner = "ada") {
    for (int64_t id = first; id < first + count; ++id) {
      JobRecord job;
      job.id = JobId(id);
      job.request_id = std::to_string(id);
      job.owner = owner;
      job.created = clock_.wall;
      job.lease = absl::Seconds(30);
      ASSERT_TRUE(store_.Apply(PutJob{std::move(job)}).ok());
      clock_.Pass(absl::Seconds(1));
      ASSERT_TRUE(store_.Apply(EndJob{JobId(id), JobState::kEnded, clock_.wall}).ok());
    }
  }
  int64_t KeptJobs() { return *store_.EndedJobs(absl::InfiniteFuture()); }

  ScratchStore store_;
  StoreCalls calls_{&store_};
  TurnedClock clock_;
  Pruning pruning_{&calls_, &clock_};
};

TEST_F(PruningTest, StormIsDroppedInOneRun) {
  Append(30'000);
  Run(1000);
  EXPECT_EQ(Kept(), 1000);
  Run(1000);
  EXPECT_EQ(Kept(), 1000);
}

TEST_F(PruningTest, ClockThatStepsDropsNothing) {
  Append(10);
  Run(1000);
  clock_.Pass(absl::Hours(2));
  Run(1000);
  clock_.wall += absl::Hours(24 * 365);
  Run(1000);
  clock_.Pass(Pruning::kEvenFor / 2);
  Run(1000);
  EXPECT_EQ(Kept(), 10);
  clock_.wall -= absl::Hours(24 * 365);  // set right in time
  clock_.Pass(2 * Pruning::kEvenFor);
  Run(1000);
  EXPECT_EQ(Kept(), 10);
  clock_.Pass(absl::Hours(48));
  Run(1000);
  EXPECT_EQ(Kept(), 0);
}

TEST_F(PruningTest, JobsByNumber) {
  EndJobs(1, 500);
  Run(100);
  EXPECT_EQ(KeptJobs(), 100);
  EXPECT_FALSE(store_.GetJob(JobId(400)).ok());
  EXPECT_TRUE(store_.GetJob(JobId(401)).ok());
  EXPECT_EQ(store_.Load()->last_job, JobId(500));
}

// A retry of a registration finds its job, whatever others do meanwhile.
TEST_F(PruningTest, OneOwnersJobsDoNotWashOutAnothers) {
  EndJobs(1, 10, "ada");
  EndJobs(11, 20, "bob");
  EndJobs(31, 500, "eve");
  Run(100);
  EXPECT_EQ(KeptJobs(), 100);
  EXPECT_TRUE(store_.GetJob(JobId(1)).ok());
  EXPECT_TRUE(store_.GetJob(JobId(11)).ok());
  EXPECT_FALSE(store_.GetJob(JobId(460)).ok());
  EXPECT_TRUE(store_.GetJob(JobId(461)).ok());
  Run(30);
  EXPECT_TRUE(store_.GetJob(JobId(1)).ok());
  EXPECT_FALSE(store_.GetJob(JobId(20)).ok());
  EXPECT_TRUE(store_.GetJob(JobId(21)).ok());
  EXPECT_EQ(KeptJobs(), 30);
}

TEST_F(PruningTest, JobsByAgeUnderAnEvenClock) {
  EndJobs(1, 40);
  clock_.wall += absl::Hours(24 * 365);
  Run(1000);
  EXPECT_EQ(KeptJobs(), 40);
  clock_.wall -= absl::Hours(24 * 365);
  Run(1000);
  clock_.Pass(2 * Pruning::kEvenFor);
  EndJobs(41, 20);
  Run(1000, absl::Hours(1));
  EXPECT_EQ(KeptJobs(), 20);
  clock_.Pass(absl::Hours(2));
  Run(1000, absl::Hours(1));
  EXPECT_EQ(KeptJobs(), 0);
}

}  // namespace
}  // namespace coppice::pruning_test
