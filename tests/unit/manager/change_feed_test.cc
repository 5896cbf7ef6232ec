// The ring of changes and its watchers: order, resuming, falling behind, sleeping, jobs of their
// own.
#include "daemon/manager/change_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/unit/manager/manager_fixture.h"

namespace coppice::change_feed_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TreeView Tree(int64_t id, int64_t job, size_t ranks = 1) {
  TreeRecord record;
  record.id = TreeId(id);
  record.job = JobId(job);
  record.ranks.resize(ranks);
  TreeView view;
  view.record = std::make_shared<const TreeRecord>(std::move(record));
  return view;
}

constexpr uint64_t kForEver = ~uint64_t{0};

std::unique_ptr<TreeWatch> Watch(
    ChangeFeed& feed, int64_t job, uint64_t from, std::function<void()> wake = [] {}) {
  return std::make_unique<TreeWatch>(&feed, JobId(job), from, kForEver, /*resumes=*/true, nullptr,
                                     std::move(wake));
}

// Ids of all the changes that there are.
std::vector<int64_t> Ids(TreeWatch& watch, size_t limit = 3) {
  std::vector<int64_t> ids;
  for (;;) {
    const auto changes = watch.Next(limit);
    EXPECT_TRUE(changes.ok()) << changes.status();
    if (!changes.ok() || changes->empty()) return ids;
    EXPECT_LE(changes->size(), limit);
    for (const TreeChange& change : *changes) {
      ids.push_back(change.tree.record ? change.tree.record->id.value() : 0);
    }
  }
}

TEST(ChangeFeedTest, EveryWatcherReadsAllFromItsPlaceOn) {
  ChangeFeed feed;
  for (int64_t id = 1; id <= 10; ++id) feed.Push(TreeChangeKind::kGranted, Tree(id, id % 2 + 1));
  EXPECT_EQ(11u, feed.next());
  EXPECT_THAT(Ids(*Watch(feed, 0, 1)), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_THAT(Ids(*Watch(feed, 0, 8)), ElementsAre(8, 9, 10));
  EXPECT_THAT(Ids(*Watch(feed, 1, 5)), ElementsAre(6, 8, 10));
  EXPECT_THAT(Ids(*Watch(feed, 3, 1)), IsEmpty());
}

TEST(ChangeFeedTest, TokensResumeAfterTheirChange) {
  ChangeFeed feed;
  for (int64_t id = 1; id <= 9; ++id) feed.Push(TreeChangeKind::kGranted, Tree(id, 1));
  const auto changes = Watch(feed, 0, 1)->Next(100);
  ASSERT_EQ(9u, changes->size());
  for (size_t i = 0; i < 9; ++i) {
    const absl::StatusOr<uint64_t> from = feed.ParseToken((*changes)[i].resume_token);
    ASSERT_TRUE(from.ok()) << from.status();
    EXPECT_EQ(8 - i, Ids(*Watch(feed, 0, *from)).size());
  }
  ChangeFeed other;
  EXPECT_TRUE(absl::IsOutOfRange(other.ParseToken((*changes)[0].resume_token).status()));
  EXPECT_TRUE(absl::IsOutOfRange(feed.ParseToken(feed.TokenOf(11)).status()));
  for (const char* bad : {"", "-", "1", "1-1", "00000000000000gg-1", "0000000000000000-",
                          "0000000000000000-1x", "0000000000000000--1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(feed.ParseToken(bad).status())) << bad;
  }
}

TEST(ChangeFeedTest, WhoFallsOutOfTheRingIsTold) {
  ChangeFeed feed;
  feed.KeepAtMost(4);
  const auto slow = Watch(feed, 0, 1);
  for (int64_t id = 1; id <= 4; ++id) feed.Push(TreeChangeKind::kGranted, Tree(id, 1));
  EXPECT_EQ(1u, slow->Next(1)->size());
  feed.Push(TreeChangeKind::kGranted, Tree(5, 1));
  EXPECT_EQ(2, slow->Next(1)->at(0).tree.record->id.value());
  for (int64_t id = 6; id <= 8; ++id) feed.Push(TreeChangeKind::kGranted, Tree(id, 1));
  EXPECT_TRUE(absl::IsOutOfRange(slow->Next(1).status()));
  EXPECT_THAT(Ids(*Watch(feed, 0, 5)), ElementsAre(5, 6, 7, 8));
}

TEST(ChangeFeedTest, LargeTreesAreKeptForFewerChanges) {
  ChangeFeed feed;
  for (int64_t id = 1; id <= 40; ++id) {
    feed.Push(TreeChangeKind::kReleased, Tree(id, 1, size_t{2} << 20));
  }
  EXPECT_TRUE(absl::IsOutOfRange(Watch(feed, 0, 1)->Next(1).status()));
  EXPECT_THAT(Ids(*Watch(feed, 0, 40)), ElementsAre(40));
}

TEST(ChangeFeedTest, WhatHasBeenThereForLongIsKeptForFewerChanges) {
  ChangeFeed feed;
  const auto push = [&](int64_t first, int64_t last, size_t ranks) {
    for (int64_t id = first; id <= last; ++id) {
      feed.Push(TreeChangeKind::kReleased, Tree(id, 1, ranks));
    }
  };
  const absl::Duration begin = absl::Hours(1);
  feed.Age(begin);
  push(1, 40, size_t{256} << 10);  // 1 MiB each
  const auto reader = Watch(feed, 0, 1);
  feed.Age(begin + ChangeFeed::kAge / 2);
  feed.Age(begin + ChangeFeed::kAge);
  EXPECT_EQ(reader->Next(1)->at(0).tree.record->id.value(), 1) << "it may be a moment old";
  push(41, 50, size_t{256} << 10);
  feed.Age(begin + 2 * ChangeFeed::kAge);
  EXPECT_TRUE(absl::IsOutOfRange(reader->Next(1).status()));
  EXPECT_THAT(Ids(*Watch(feed, 0, 40)), testing::SizeIs(11)) << "2 MiB, with what they are in";
  // Small ones stay, and what is young does, however much it is.
  push(51, 150, 1);
  for (int times = 3; times < 6; ++times) feed.Age(begin + times * ChangeFeed::kAge);
  EXPECT_THAT(Ids(*Watch(feed, 0, 50)), testing::SizeIs(101));
}

TEST(ChangeFeedTest, RecordsThatAreGrantedCostTheRingNothing) {
  ChangeFeed feed;
  std::vector<TreeView> granted;
  for (int64_t id = 1; id <= 40; ++id) granted.push_back(Tree(id, 1, size_t{256} << 10));  // 1 MiB
  feed.Age(absl::Hours(1));
  for (const TreeView& tree : granted) feed.Push(TreeChangeKind::kGranted, tree);
  int times = 0;
  const auto age = [&] { feed.Age(absl::Hours(1) + ++times * ChangeFeed::kAge); };
  for (int i = 0; i < 3; ++i) age();
  EXPECT_THAT(Ids(*Watch(feed, 0, 1)), testing::SizeIs(40));
  granted.clear();
  age();
  EXPECT_TRUE(absl::IsOutOfRange(Watch(feed, 0, 1)->Next(1).status()));
  EXPECT_THAT(Ids(*Watch(feed, 0, 40)), testing::SizeIs(1));
}

// A job's ranks count once, however many of its trees come and go.
TEST(ChangeFeedTest, TreesOfLargeJobsAreKeptForFewerChanges) {
  ChangeFeed feed;
  std::weak_ptr<const JobRecord> first;
  for (int64_t id = 1; id <= 40; ++id) {
    auto job = std::make_shared<JobRecord>();
    job->endpoints.resize(size_t{1} << 20);  // 8 MiB
    if (id == 1) first = job;
    TreeView tree = Tree(id, id);
    tree.job = std::move(job);
    for (int i = 0; i < 100; ++i) feed.Push(TreeChangeKind::kGranted, tree);
    if (id == 15) {
      EXPECT_THAT(Ids(*Watch(feed, 0, 1), 1500), testing::SizeIs(1500));
    }
  }
  EXPECT_TRUE(first.expired());
  EXPECT_THAT(Ids(*Watch(feed, 0, 3901)), testing::SizeIs(100));
}

TEST(ChangeFeedTest, SleepersAreWokenOnceForWhatIsTheirs) {
  ChangeFeed feed;
  feed.KeepAtMost(3);
  int woken_all = 0, woken_job = 0;
  const auto all = Watch(feed, 0, 1, [&] { ++woken_all; });
  const auto job = Watch(feed, 7, 1, [&] { ++woken_job; });
  feed.Push(TreeChangeKind::kGranted, Tree(1, 1));
  EXPECT_EQ(0, woken_all);  // nobody sleeps yet
  EXPECT_THAT(Ids(*all), ElementsAre(1));
  EXPECT_THAT(Ids(*job), IsEmpty());
  // Many for others: one that sleeps does not fall behind by them.
  for (int64_t id = 2; id <= 20; ++id) {
    feed.Push(TreeChangeKind::kGranted, Tree(id, 1));
    EXPECT_THAT(Ids(*all), ElementsAre(id));
  }
  EXPECT_EQ(19, woken_all);
  EXPECT_EQ(0, woken_job);
  feed.Push(TreeChangeKind::kGranted, Tree(21, 7));
  feed.Push(TreeChangeKind::kReleased, Tree(21, 7));
  EXPECT_EQ(1, woken_job);
  EXPECT_THAT(Ids(*job), ElementsAre(21, 21));
  EXPECT_THAT(Ids(*job), IsEmpty());
}

TEST(ChangeFeedTest, AJobsWatchersEndWithTheJob) {
  ChangeFeed feed;
  const auto watch = Watch(feed, 2, 1), all = Watch(feed, 0, 1);
  feed.Push(TreeChangeKind::kReleased, Tree(1, 2));
  feed.PushEndOf(JobId(1));
  feed.PushEndOf(JobId(2));
  EXPECT_FALSE(watch->over());
  EXPECT_THAT(Ids(*watch), ElementsAre(1));
  EXPECT_TRUE(watch->over());
  EXPECT_THAT(Ids(*all), ElementsAre(1));
  EXPECT_FALSE(all->over());
}

TEST(ChangeFeedTest, AWatcherThatGoesIsNotWoken) {
  ChangeFeed feed;
  int woken = 0;
  for (int64_t job : {0, 3}) {
    auto watch = Watch(feed, job, 1, [&] { ++woken; });
    EXPECT_THAT(Ids(*watch), IsEmpty());
  }
  feed.Push(TreeChangeKind::kGranted, Tree(1, 3));
  EXPECT_EQ(0, woken);
}

TEST(ChangeFeedTest, ManyThreadsReadWhatOneWrites) {
  ChangeFeed feed;
  constexpr int64_t kChanges = 5'000;
  std::vector<std::thread> readers;
  for (int64_t r = 0; r < 4; ++r) {
    readers.emplace_back([&feed, r] {
      std::mutex mu;
      std::condition_variable woken;
      bool is_awake = false;
      const auto watch = Watch(feed, r % 2, 1, [&] {
        std::lock_guard lock(mu);
        is_awake = true;
        woken.notify_all();
      });
      int64_t last = 0;
      while (last < kChanges) {
        for (const int64_t id : Ids(*watch, 64)) {
          EXPECT_EQ(last + 1, id);
          last = id;
        }
        std::unique_lock lock(mu);
        if (last < kChanges) woken.wait(lock, [&] { return is_awake; });
        is_awake = false;
      }
    });
  }
  for (int64_t id = 1; id <= kChanges; ++id) feed.Push(TreeChangeKind::kGranted, Tree(id, 1));
  for (std::thread& reader : readers) reader.join();
}

using WatchTreesTest = ManagerTest;

TEST_F(WatchTreesTest, ListsThenTellsWithoutGapOrOverlap) {
  Boot();
  const JobId job = NewJob();
  std::atomic<bool> stop = false;
  std::thread tenant([&] {
    while (!stop) {
      CreateTreeArgs args = TreeOf(job, TreeType::kTypeI);
      args.ranks = {0, 1};
      const auto tree = Create(args);
      if (tree.ok() && tree->record->id.value() % 3 != 0) {
        EXPECT_TRUE(Release(tree->record->id).ok());
      }
    }
  });
  for (int n = 0; n < 50; ++n) {
    auto watch = manager_->WatchTrees(JobId(), "", [] {});
    ASSERT_TRUE(watch.ok());
    std::set<TreeId> granted;
    bool is_synced = false;
    for (int looks = 0; looks < 100; ++looks) {
      const auto changes = (*watch)->Next(5);
      ASSERT_TRUE(changes.ok());
      for (const TreeChange& change : *changes) {
        if (change.kind == TreeChangeKind::kSynced) {
          is_synced = true;
          continue;
        }
        const TreeId id = change.tree.record->id;
        EXPECT_EQ(change.kind == TreeChangeKind::kPresent, !is_synced);
        EXPECT_EQ(change.kind == TreeChangeKind::kPresent, change.resume_token.empty());
        if (change.kind == TreeChangeKind::kReleased) {
          EXPECT_EQ(1u, granted.erase(id));
        } else {
          EXPECT_TRUE(granted.insert(id).second);
        }
      }
    }
  }
  stop = true;
  tenant.join();
}

TEST_F(WatchTreesTest, JobsThatAreOverAndJobsThatNeverWere) {
  Boot();
  const JobId job = NewJob();
  auto early = manager_->WatchTrees(job, "", [] {});
  const auto tree = Create(TreeOf(job));
  ASSERT_TRUE(tree.ok());
  const auto first = (*early)->Next(100);
  ASSERT_EQ(1u, first->size());
  EXPECT_EQ(TreeChangeKind::kSynced, (*first)[0].kind);
  ASSERT_TRUE(End(job).ok());
  Settle();
  const auto rest = (*early)->Next(100);
  ASSERT_EQ(2u, rest->size());
  EXPECT_EQ(TreeChangeKind::kGranted, (*rest)[0].kind);
  EXPECT_EQ(TreeChangeKind::kReleased, (*rest)[1].kind);
  EXPECT_TRUE((*early)->Next(100)->empty());
  EXPECT_TRUE((*early)->over());
  auto late = manager_->WatchTrees(job, "", [] {});
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(1u, (*late)->Next(100)->size());  // kSynced
  EXPECT_TRUE((*late)->Next(100)->empty());
  EXPECT_TRUE((*late)->over());
  auto resumed = manager_->WatchTrees(job, (*first)[0].resume_token, [] {});
  EXPECT_EQ(2u, (*resumed)->Next(100)->size());
  EXPECT_TRUE((*resumed)->Next(100)->empty());
  EXPECT_TRUE((*resumed)->over());
  EXPECT_TRUE(absl::IsNotFound(manager_->WatchTrees(JobId(77), "", [] {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(manager_->WatchTrees(job, "x", [] {}).status()));
}

}  // namespace
}  // namespace coppice::change_feed_test
