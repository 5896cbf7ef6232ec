// What a store forgets: jobs that ended first, events that are too many; in steps, and nothing
// else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "tests/support/tier.h"
#include "tests/unit/db/raw_database.h"
#include "tests/unit/db/store_records.h"

namespace coppice::store_pruning_test {
namespace {

using absl::StatusCode;

class StorePruningTest : public StoreTest {
 protected:
  void PutAndEnd(int64_t id, int64_t ended, const std::string& owner = "ada") {
    JobRecord job = Job(id, "r" + std::to_string(id));
    job.owner = owner;
    ASSERT_APPLIED(store_->Apply(PutJob{std::move(job)}));
    ASSERT_APPLIED(store_->Apply(EndJob{JobId(id), JobState::kEnded, At(ended)}));
  }
  bool Knows(int64_t id) { return store_->GetJob(JobId(id)).ok(); }
};

TEST_F(StorePruningTest, JobsGoInTheOrderOfTheirEnds) {
  Store& store = *store_;
  PutAndEnd(1, 300);
  PutAndEnd(2, 100);
  PutAndEnd(3, 200);
  PutAndEnd(4, 200);
  ASSERT_APPLIED(store.Apply(PutJob{Job(5, "active")}));
  EXPECT_EQ(*store.EndedJobs(absl::InfiniteFuture()), 4);
  EXPECT_EQ(*store.EndedJobs(At(200)), 1);
  EXPECT_EQ(*store.EndedJobs(At(201)), 3);
  EXPECT_EQ(*store.EndedJobs(absl::InfinitePast()), 0);
  ASSERT_APPLIED(store.Apply(PruneJobs{3, absl::InfinitePast(), 10}));
  EXPECT_FALSE(Knows(2));
  EXPECT_EQ(*store.EndedJobs(absl::InfiniteFuture()), 3);
  ASSERT_APPLIED(store.Apply(PruneJobs{0, absl::InfinitePast(), 1}));
  EXPECT_FALSE(Knows(3));
  EXPECT_TRUE(Knows(4));
  ASSERT_APPLIED(store.Apply(PruneJobs{10, At(300), 10}));
  EXPECT_FALSE(Knows(4));
  EXPECT_TRUE(Knows(1));
  ASSERT_APPLIED(store.Apply(PruneJobs{0, absl::InfiniteFuture(), 10}));
  EXPECT_FALSE(Knows(1));
  EXPECT_TRUE(Knows(5));
  EXPECT_STATUS(store.Apply(PruneJobs{-1}), StatusCode::kInvalidArgument, "kept jobs");
  EXPECT_EQ(Load().jobs.size(), 1u);
}

TEST_F(StorePruningTest, OfOneOwnerOnly) {
  Store& store = *store_;
  for (int64_t id = 1; id <= 6; ++id) PutAndEnd(id, 10 * id, id % 2 == 0 ? "eve" : "ada");
  ASSERT_APPLIED(store.Apply(PutJob{Job(7, "active")}));
  std::map<std::string, int64_t> owners;
  const auto counted = store.EndedJobsOfOwners();
  for (const OwnedJobs& owned : *counted) owners[owned.owner] = owned.jobs;
  EXPECT_EQ(owners, (std::map<std::string, int64_t>{{"ada", 3}, {"eve", 3}}));
  ASSERT_APPLIED(store.Apply(PruneJobs{1, absl::InfinitePast(), 1, "eve"}));
  EXPECT_FALSE(Knows(2));
  EXPECT_TRUE(Knows(4));
  ASSERT_APPLIED(store.Apply(PruneJobs{1, absl::InfinitePast(), 10, "eve"}));
  EXPECT_FALSE(Knows(4));
  EXPECT_TRUE(Knows(6));
  for (const int64_t id : {1, 3, 5, 7}) EXPECT_TRUE(Knows(id)) << id;
  ASSERT_APPLIED(store.Apply(PruneJobs{9, At(50), 10, "ada"}));
  EXPECT_FALSE(Knows(3));
  EXPECT_TRUE(Knows(5));
}

TEST_F(StorePruningTest, RequestIdsAreFreeAgainAndIdsAreNot) {
  Store& store = *store_;
  PutAndEnd(7, 10);
  EXPECT_STATUS(store.Apply(PutJob{Job(8, "r7")}), StatusCode::kAlreadyExists, "job 7");
  ASSERT_APPLIED(store.Apply(PruneJobs{0}));
  EXPECT_STATUS(store.GetJob(JobId(7)).status(), StatusCode::kNotFound, "forgotten");
  EXPECT_EQ(Load().last_job, JobId(7));  // after a restart
  ASSERT_APPLIED(store_->Apply(PutJob{Job(8, "r7")}));
}

// Jobs with trees are active, and stay with them.
TEST_F(StorePruningTest, TreesStay) {
  Store& store = *store_;
  ASSERT_APPLIED(store.Apply(PutJob{Job(1)}));
  ASSERT_APPLIED(store.Apply(GrantTree{Tree(1, 1)}));
  PutAndEnd(2, 10);
  ASSERT_APPLIED(store.Apply(PruneJobs{0, absl::InfiniteFuture(), 100}));
  EXPECT_EQ(Load().trees.size(), 1u);
}

TEST_F(StorePruningTest, EventsAreNeverMoreThanAreKept) {
  Store& store = *store_;
  std::mt19937_64 random(TestSeed());
  int64_t newest = 0;
  for (int round = 0; round < 200; ++round) {
    AppendEvents append{{}, 50};
    for (uint64_t n = random() % 9; n > 0; --n) append.events.push_back(Event("info", "a"));
    newest += static_cast<int64_t>(append.events.size());
    ASSERT_APPLIED(store.Apply(std::move(append)));
    const EventRange kept = *store.KeptEvents();
    EXPECT_EQ(kept.newest, newest);
    EXPECT_EQ(kept.oldest, std::max<int64_t>(1, newest - 49));
  }
}

// A lower limit is reached step by step: no single event pays for it.
TEST_F(StorePruningTest, ASurplusGoesTwiceAsFastAsEventsCome) {
  Store& store = *store_;
  AppendEvents many;
  for (int i = 0; i < 100; ++i) many.events.push_back(Event("info", "a"));
  ASSERT_APPLIED(store.Apply(std::move(many)));
  AppendEvents two{{Event("info", "b"), Event("info", "b")}, 10};
  ASSERT_APPLIED(store.Apply(two));
  EXPECT_EQ(*store.KeptEvents(), (EventRange{5, 102}));
  for (int i = 0; i < 60; ++i) ASSERT_APPLIED(store.Apply(two));
  EXPECT_EQ(*store.KeptEvents(), (EventRange{213, 222}));
  ASSERT_APPLIED(store.Apply(AppendEvents{{Event("info", "b")}, 0}));
  ASSERT_APPLIED(store.Apply(AppendEvents{}));
  EXPECT_STATUS(store.Apply(AppendEvents{{}, -1}), StatusCode::kInvalidArgument, "kept events");
}

// The database of a daemon that runs jobs for ever stays as large as it is, and so does its log.
TEST(SqlitePruningTest, SizeStaysFlatWhereJobsComeAndGo) {
  StoreDirectory directory;
  const std::string path = directory.File("coppice.db");
  auto store = *SqliteStore::Open(path);
  const int jobs = FullTier() ? 4000 : 800;
  uint64_t full = 0, log = 0;
  for (int id = 1; id <= jobs; ++id) {
    JobRecord job = Job(id, "r" + std::to_string(id));
    job.endpoints.assign(3000, Guid(0x0002c9030010a001));
    ASSERT_APPLIED(store->Apply(PutJob{std::move(job)}));
    ASSERT_APPLIED(store->Apply(EndJob{JobId(id), JobState::kEnded, At(id)}));
    ASSERT_APPLIED(store->Apply(PruneJobs{100}));
    log = std::max<uint64_t>(log, std::filesystem::file_size(path + "-wal"));
    if (id == 200) full = std::stoull(RawDatabase(path).Run("PRAGMA page_count"));
  }
  EXPECT_LE(std::stoull(RawDatabase(path).Run("PRAGMA page_count")), full + 40);
  EXPECT_EQ(*store->EndedJobs(absl::InfiniteFuture()), 100);
  EXPECT_LE(log, kLogBytes + (1u << 20));
}

}  // namespace
}  // namespace coppice::store_pruning_test
