// Jobs of so many ranks that they are written in steps: whole or not at all, whatever comes
// between, and in nobody's way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <random>
#include <string>
#include <vector>

#include "db/sqlite_connection.h"
#include "db/sqlite_tables.h"
#include "tests/support/tier.h"
#include "tests/unit/db/raw_database.h"
#include "tests/unit/db/store_records.h"

namespace coppice {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

// Of ranks that all differ, and from those of other jobs.
JobRecord Large(int64_t id, size_t ranks, std::string request_id = "") {
  JobRecord job = Job(id, std::move(request_id));
  job.endpoints.clear();
  for (size_t rank = 0; rank < ranks; ++rank) {
    job.endpoints.push_back(Guid((static_cast<uint64_t>(id) << 32) + rank));
  }
  return job;
}

constexpr char kOrphans[] =
    "SELECT count(*) FROM job_ranks WHERE job_id NOT IN (SELECT id FROM job)";

class StoreLargeJobsTest : public StoreTest {};

TEST_F(StoreLargeJobsTest, AreReadBackWhateverTheirSize) {
  int64_t id = 0;
  for (const size_t ranks : {size_t{0}, size_t{1}, kRanksOfSlice - 1, kRanksOfSlice,
                             kRanksOfSlice + 1, 2 * kRanksOfSlice, 3 * kRanksOfSlice + 7}) {
    ++id;
    const JobRecord job = Large(id, ranks, "r" + std::to_string(id));
    ASSERT_APPLIED(store_->Apply(PutJob{job}));
    ASSERT_TRUE(*store_->GetJob(job.id) == job) << ranks;
  }
  const StoredState state = Load();
  ASSERT_EQ(state.jobs.size(), 7u);
  EXPECT_TRUE(state.jobs[6] == Large(7, 3 * kRanksOfSlice + 7, "r7"));
}

TEST_F(StoreLargeJobsTest, AreRefusedAsOthers) {
  Store& store = *store_;
  const size_t ranks = 2 * kRanksOfSlice + 1;
  const JobRecord first = Large(1, ranks, "r");
  ASSERT_APPLIED(store.Apply(PutJob{first}));
  EXPECT_STATUS(store.Apply(PutJob{Large(1, ranks)}), StatusCode::kAlreadyExists, "job 1 exists");
  EXPECT_STATUS(store.Apply(PutJob{Large(2, ranks, "r")}), StatusCode::kAlreadyExists,
                "belongs to job 1");
  EXPECT_STATUS(store.Apply(StartPlacement{PlacementId(1), Large(2, ranks)}), StatusCode::kNotFound,
                "placement 1");
  EXPECT_STATUS(store.GetJob(JobId(2)).status(), StatusCode::kNotFound, "job 2");
  EXPECT_TRUE(*store.GetJob(JobId(1)) == first);
  ASSERT_APPLIED(store.Apply(PutPlacements{{Placement(1, {"n1"})}}));
  const JobRecord started = Large(2, ranks);
  ASSERT_APPLIED(store.Apply(StartPlacement{PlacementId(1), started}));
  EXPECT_TRUE(*store.GetJob(JobId(2)) == started);
  EXPECT_EQ(store.GetPlacement(PlacementId(1))->job, JobId(2));
}

TEST_F(StoreLargeJobsTest, EndAndGo) {
  Store& store = *store_;
  const size_t ranks = 2 * kRanksOfSlice + 1;
  for (int64_t id : {1, 2}) ASSERT_APPLIED(store.Apply(PutJob{Large(id, ranks)}));
  const auto one = static_cast<int64_t>(19 * ranks + 1);
  for (int64_t id : {1, 2}) {
    ASSERT_APPLIED(store.Apply(EndJob{JobId(id), JobState::kEnded, At(id), {one}, nullptr}));
    EXPECT_EQ(store.GetJob(JobId(id))->endpoints.size(), ranks);
  }
  EXPECT_EQ(store.GetJob(JobId(1))->dropped_ranks, ranks);
  EXPECT_TRUE(store.GetJob(JobId(1))->endpoints.empty());
  ASSERT_APPLIED(store.Apply(PruneJobs{0}));
  EXPECT_STATUS(store.GetJob(JobId(2)).status(), StatusCode::kNotFound, "job 2");
}

TEST_F(StoreLargeJobsTest, DestructionWritesThemWhole) {
  int answered = 0;
  for (int64_t id : {1, 2}) {
    store_->Submit(PutJob{Large(id, 5 * kRanksOfSlice)},
                   [&](absl::Status status) { answered += status.ok(); });
  }
  store_.reset();
  EXPECT_EQ(answered, 2);
}

class SqliteLargeJobsTest : public StoreTest {
 protected:
  std::string Ask(const std::string& sql) { return RawDatabase(path_).Run(sql); }
};

// What was submitted together with two large jobs is durable before either of them, and the first
// of them before the second.
TEST_F(SqliteLargeJobsTest, AreInNobodysWay) {
  std::promise<void> go;
  std::vector<int64_t> answered;  // the store's thread's
  store_->Submit(PutJob{Job(1)}, [&](absl::Status) { go.get_future().wait(); });
  const auto note = [&](int64_t id) {
    return [&answered, id](absl::Status status) {
      EXPECT_TRUE(status.ok()) << status;
      answered.push_back(id);
    };
  };
  for (int64_t id : {2, 3}) store_->Submit(PutJob{Large(id, 3 * kRanksOfSlice)}, note(id));
  for (int64_t id : {4, 5, 6}) store_->Submit(PutJob{Job(id)}, note(id));
  go.set_value();
  ASSERT_APPLIED(store_->Apply(PutJob{Large(7, 2 * kRanksOfSlice)}));
  EXPECT_THAT(answered, testing::ElementsAre(4, 5, 6, 2, 3));
  EXPECT_EQ(store_->Statistics().queued, 0u);
  EXPECT_EQ(store_->Statistics().mutations, 7u);
}

// Another that is refused in the same group undoes no step.
TEST_F(SqliteLargeJobsTest, OutliveRefusalsBetween) {
  std::promise<void> go;
  store_->Submit(PutJob{Job(1)}, [&](absl::Status) { go.get_future().wait(); });
  const JobRecord large = Large(2, 4 * kRanksOfSlice);
  std::promise<absl::Status> done;
  int refused = 0;
  std::promise<void> all_refused;
  store_->Submit(PutJob{large}, [&](absl::Status status) { done.set_value(status); });
  // One in each group: the next is submitted when the last was answered.
  std::function<void(absl::Status)> again = [&](absl::Status status) {
    refused += absl::IsAlreadyExists(status);
    if (refused == 10 || !absl::IsAlreadyExists(status)) return all_refused.set_value();
    store_->Submit(PutJob{Job(1)}, again);
  };
  store_->Submit(PutJob{Job(1)}, again);
  go.set_value();
  ASSERT_APPLIED(done.get_future().get());
  ASSERT_APPLIED(store_->Apply(PutJob{Job(3)}));
  EXPECT_TRUE(*store_->GetJob(JobId(2)) == large);
  all_refused.get_future().wait();  // `again` needs the store
  store_.reset();
  EXPECT_EQ(refused, 10);
}

TEST_F(SqliteLargeJobsTest, LeaveNothingWhereTheyAreRefused) {
  ASSERT_APPLIED(store_->Apply(PutJob{Job(1, "r")}));
  EXPECT_FALSE(store_->Apply(PutJob{Large(2, 3 * kRanksOfSlice, "r")}).ok());
  ASSERT_APPLIED(store_->Apply(PutJob{Job(3)}));  // drops what was left
  EXPECT_EQ(Ask(kOrphans), "0\n");
  EXPECT_EQ(Ask("SELECT count(*) FROM job_endpoint"), "4\n");
}

TEST_F(SqliteLargeJobsTest, LeaveNothingOnAFullDisk) {
  Open({.max_pages = 500});  // each slice takes 76
  ASSERT_APPLIED(store_->Apply(PutJob{Job(1)}));
  EXPECT_STATUS(store_->Apply(PutJob{Large(2, 50 * kRanksOfSlice)}), StatusCode::kUnavailable,
                "disk full");
  ASSERT_APPLIED(store_->Apply(PutJob{Job(3)}));
  EXPECT_EQ(Ask(kOrphans), "0\n");
  const JobRecord fits = Large(4, 2 * kRanksOfSlice);
  ASSERT_APPLIED(store_->Apply(PutJob{fits}));
  EXPECT_TRUE(*store_->GetJob(JobId(4)) == fits);
}

TEST_F(SqliteLargeJobsTest, WhatAKilledDaemonLeftGoesAtTheNextStart) {
  ASSERT_APPLIED(store_->Apply(PutJob{Job(1)}));
  store_.reset();
  EXPECT_EQ(Ask("INSERT INTO job_ranks VALUES (2, 0, '[\"0000000000000007\"]'); SELECT "
                "count(*) FROM job_endpoint"),
            "2\n");
  Open();
  EXPECT_EQ(Ask(kOrphans), "0\n");
  ASSERT_APPLIED(store_->Apply(PutJob{Large(2, 2 * kRanksOfSlice)}));
}

TEST_F(SqliteLargeJobsTest, MissingRanksAreDamage) {
  ASSERT_APPLIED(store_->Apply(PutJob{Large(1, 3 * kRanksOfSlice)}));
  EXPECT_EQ(Ask("DELETE FROM job_ranks WHERE first_rank = 16384"), "");
  EXPECT_STATUS(store_->GetJob(JobId(1)).status(), StatusCode::kDataLoss, "job 1");
  EXPECT_EQ(Ask("DELETE FROM job_ranks WHERE first_rank > 0"), "");
  EXPECT_STATUS(store_->GetJob(JobId(1)).status(), StatusCode::kDataLoss, "16384 ranks where");
}

TEST_F(SqliteLargeJobsTest, AdministratorsReadRanks) {
  ASSERT_APPLIED(store_->Apply(PutJob{Large(1, kRanksOfSlice + 2)}));
  EXPECT_EQ(Ask("SELECT port_guid FROM job_endpoint WHERE job_id = 1 AND rank IN (3, 16385)"),
            "0000000100000003\n0000000100004001\n");
}

TEST_F(SqliteLargeJobsTest, EarlierSchemasHadThemInOnePiece) {
  store_.reset();
  const std::string path = directory_.File("old.db");
  {
    auto connection = SqliteConnection::Open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                                             absl::ZeroDuration());
    ASSERT_TRUE(connection.ok());
    ASSERT_APPLIED(Migrate(**connection, Migrations().first(12)));
    ASSERT_APPLIED((*connection)->Execute(R"sql(
        INSERT INTO job (id, request_fingerprint, name, owner, endpoints, lease_ns, state,
                         created_ns, ended_ns, kept_bytes, dropped_ranks)
        VALUES (1, 0, '', 'ada', '["0000000000000007","0000000000000008"]', 1, 'active', 0, NULL,
                39, 0),
               (2, 0, '', 'ada', '["0000000000000009"]', 1, 'ended', 0, 5, 20, 0),
               (3, 0, '', 'ada', '[]', 1, 'ended', 0, 6, 0, 4))sql"));
  }
  auto store = SqliteStore::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT((*store)->GetJob(JobId(1))->endpoints, testing::ElementsAre(Guid(7), Guid(8)));
  EXPECT_THAT((*store)->GetJob(JobId(2))->endpoints, testing::ElementsAre(Guid(9)));
  EXPECT_EQ((*store)->GetJob(JobId(3))->dropped_ranks, 4u);
  ASSERT_APPLIED((*store)->Apply(EndJob{JobId(1), JobState::kEnded, At(9), {39}, nullptr}));
  EXPECT_EQ((*store)->GetJob(JobId(2))->dropped_ranks, 1u);
  EXPECT_EQ((*store)->GetJob(JobId(1))->endpoints.size(), 2u);
}

// kill -9 at any instant: jobs that were answered are there, others whole or not at all.
TEST_F(SqliteLargeJobsTest, KilledInTheMiddle) {
  store_.reset();
  constexpr size_t kRanks = 4 * kRanksOfSlice + 3;
  std::mt19937_64 random(TestSeed());
  int64_t next = 1, answered = 0;
  for (int round = 0; round < (FullTier() ? 100 : 8); ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(ends[0]);
      auto store = SqliteStore::Open(path_);
      if (!store.ok()) _exit(1);
      for (int64_t id = next;; ++id) {
        const int64_t begun = -id;
        if (write(ends[1], &begun, sizeof(begun)) != sizeof(begun)) _exit(2);
        if (!(*store)->Apply(PutJob{Large(id, kRanks)}).ok()) _exit(3);
        if (write(ends[1], &id, sizeof(id)) != sizeof(id)) _exit(2);
      }
    }
    close(ends[1]);
    int64_t note = 0, begun = 0;
    const int64_t most = answered + static_cast<int64_t>(random() % 3);
    while (read(ends[0], &note, sizeof(note)) == sizeof(note)) {
      if (note > 0) answered = note;
      if (note < 0) begun = -note;
      if (note < 0 && answered >= most) {
        const timespec while_it_writes{0, static_cast<int64_t>(random() % 5'000'000)};
        pselect(0, nullptr, nullptr, nullptr, &while_it_writes, nullptr);
        kill(child, SIGKILL);
      }
    }
    close(ends[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << WEXITSTATUS(status);
    Open();
    EXPECT_EQ(Ask(kOrphans), "0\n");
    const StoredState state = *store_->Load();
    const auto count = static_cast<int64_t>(state.jobs.size());
    ASSERT_TRUE(count == answered || count == begun) << count << " of " << answered;
    ASSERT_EQ(state.last_job, JobId(count));
    for (const JobRecord& job : state.jobs) {
      if (job.id.value() < next) continue;  // looked at in an earlier round
      ASSERT_TRUE(job == Large(job.id.value(), kRanks)) << job.id.value();
    }
    next = count + 1;
    answered = count;
    store_.reset();
  }
}

}  // namespace
}  // namespace coppice
