// Events for whoever watches: each once and in order whatever races, filters as ListEvents has
// them, resuming over restarts, slow watchers, events that are kept no more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "daemon/manager/event_log.h"
#include "db/sqlite_store.h"
#include "tests/support/passing_store.h"
#include "tests/support/scratch_store.h"
#include "tests/support/tier.h"

namespace coppice::event_feed_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

EventRecord Happened(const std::string& severity, const std::string& kind,
                     const std::string& object = "fabric") {
  return {0, absl::FromUnixSeconds(1), severity, kind, object, "words"};
}

// Counts questions, and keeps no events before an id.
class ForgetfulStore final : public PassingStore {
 public:
  using PassingStore::PassingStore;
  void ForgetBefore(int64_t id) { oldest_ = id; }
  void Fail(absl::Status status) {
    std::lock_guard lock(mu_);
    failure_ = std::move(status);
  }
  int questions() const { return questions_; }

  absl::StatusOr<std::vector<EventRecord>> Events(const EventFilter& filter) override {
    ++questions_;
    {
      std::lock_guard lock(mu_);
      if (!failure_.ok()) return failure_;
    }
    EventFilter kept = filter;
    kept.after_id = std::max<int64_t>(kept.after_id, oldest_ - 1);
    return store_->Events(kept);
  }
  absl::StatusOr<EventRange> KeptEvents() override {
    EventRange kept = *store_->KeptEvents();
    kept.oldest = std::max<int64_t>(kept.oldest, oldest_);
    return kept;
  }

 private:
  std::atomic<int64_t> oldest_ = 1;
  std::atomic<int> questions_ = 0;
  std::mutex mu_;
  absl::Status failure_;  // guarded by mu_
};

// A watcher that waits.
class Reader {
 public:
  Reader(EventFeed& feed, EventFilter filter, std::optional<int64_t> after) {
    auto watch = feed.Watch(std::move(filter), after, [this] {
      std::lock_guard lock(mu_);
      ++wakes_;
      is_awake_ = true;
      woken_.notify_all();
    });
    EXPECT_TRUE(watch.ok()) << watch.status();
    if (watch.ok()) watch_ = *std::move(watch);
  }

  // What there is now.
  std::vector<int64_t> Ids(uint32_t limit = 3) {
    std::vector<int64_t> ids;
    while (true) {
      {
        std::lock_guard lock(mu_);
        is_awake_ = false;
      }
      const auto events = watch_->Next(limit);
      EXPECT_TRUE(events.ok()) << events.status();
      if (!events.ok() || events->empty()) return ids;
      EXPECT_LE(events->size(), limit);
      for (const auto& event : *events) ids.push_back(event->id);
    }
  }
  // Ids up to `last`, waiting for them.
  std::vector<int64_t> IdsUpTo(int64_t last) {
    std::vector<int64_t> ids = Ids();
    while (ids.empty() || ids.back() < last) {
      {
        std::unique_lock lock(mu_);
        woken_.wait(lock, [this] { return is_awake_; });
      }
      for (const int64_t id : Ids()) ids.push_back(id);
    }
    return ids;
  }
  absl::Status Error() { return watch_->Next(3).status(); }
  int wakes() const {
    std::lock_guard lock(mu_);
    return wakes_;
  }

 private:
  mutable std::mutex mu_;
  std::condition_variable woken_;
  bool is_awake_ = false;
  int wakes_ = 0;
  std::unique_ptr<EventWatch> watch_;  // last: it calls what uses the above
};

class EventFeedTest : public ::testing::Test {
 protected:
  void Append(std::vector<EventRecord> events) {
    ASSERT_TRUE(store_.Apply(AppendEvents{std::move(events)}).ok());
    feed_.Look();
  }
  void AppendMany(int count, const std::string& kind = "link.down") {
    for (int i = 0; i < count; ++i) Append({Happened("warning", kind)});
  }

  ScratchStore kept_;
  ForgetfulStore store_{&kept_};
  EventFeed feed_{&store_, /*kept=*/8};
};

TEST_F(EventFeedTest, BeginsNowOrAfterAnIdOrWithTheOldest) {
  AppendMany(3);
  Reader now(feed_, {}, std::nullopt), after(feed_, {}, 2), all(feed_, {}, 0), at_end(feed_, {}, 3);
  EXPECT_THAT(now.Ids(), IsEmpty());
  EXPECT_THAT(after.Ids(), ElementsAre(3));
  EXPECT_THAT(all.Ids(2), ElementsAre(1, 2, 3));
  EXPECT_THAT(at_end.Ids(), IsEmpty());
  AppendMany(2);
  EXPECT_THAT(now.IdsUpTo(5), ElementsAre(4, 5));
  EXPECT_THAT(after.IdsUpTo(5), ElementsAre(4, 5));
  EXPECT_THAT(all.IdsUpTo(5), ElementsAre(4, 5));
  EXPECT_THAT(at_end.IdsUpTo(5), ElementsAre(4, 5));
}

TEST_F(EventFeedTest, RefusesWhatCannotBeWatched) {
  AppendMany(9);
  const auto status_of = [&](EventFilter filter, std::optional<int64_t> after) {
    return feed_.Watch(std::move(filter), after, [] {}).status();
  };
  EXPECT_EQ(absl::StatusCode::kInvalidArgument, status_of({}, -1).code());
  EXPECT_EQ(absl::StatusCode::kInvalidArgument, status_of({.min_severity = "loud"}, 0).code());
  EXPECT_EQ(absl::StatusCode::kOutOfRange, status_of({}, 10).code());
  store_.ForgetBefore(6);
  EXPECT_EQ(absl::StatusCode::kOutOfRange, status_of({}, 4).code());
  EXPECT_THAT(std::string(status_of({}, 4).message()), HasSubstr("the oldest is 6"));
  EXPECT_TRUE(status_of({}, 5).ok());
  EXPECT_THAT(Reader(feed_, {}, 0).Ids(), ElementsAre(6, 7, 8, 9));
  store_.ForgetBefore(10);  // none is left
  EXPECT_TRUE(status_of({}, 9).ok());
  EXPECT_EQ(absl::StatusCode::kOutOfRange, status_of({}, 8).code());
  EXPECT_EQ(0u, feed_.watches());
}

TEST_F(EventFeedTest, WakesOnlyThoseForWhomSomethingCame) {
  Reader all(feed_, {}, std::nullopt), jobs(feed_, {.kind_prefix = "job."}, std::nullopt),
      errors(feed_, {.min_severity = "error"}, std::nullopt),
      one(feed_, {.object = "job:7"}, std::nullopt);
  for (Reader* reader : {&all, &jobs, &errors, &one}) EXPECT_THAT(reader->Ids(), IsEmpty());
  AppendMany(20);
  EXPECT_EQ(20u, all.IdsUpTo(20).size());
  Append({Happened("info", "job.ended", "job:8"), Happened("error", "job.ended", "job:7")});
  EXPECT_THAT(jobs.IdsUpTo(22), ElementsAre(21, 22));
  EXPECT_THAT(errors.IdsUpTo(22), ElementsAre(22));
  EXPECT_THAT(one.IdsUpTo(22), ElementsAre(22));
  EXPECT_EQ(1, jobs.wakes());
  EXPECT_EQ(1, errors.wakes());
  EXPECT_EQ(1, one.wakes());
}

TEST_F(EventFeedTest, ManyWatchersCostTheStoreOneQuestion) {
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < 200; ++i) {
    readers.push_back(std::make_unique<Reader>(feed_, EventFilter(), std::nullopt));
    EXPECT_THAT(readers.back()->Ids(), IsEmpty());
  }
  EXPECT_EQ(200u, feed_.watches());
  const int before = store_.questions();
  for (int64_t id = 1; id <= 20; ++id) {
    AppendMany(1);
    for (const auto& reader : readers) ASSERT_THAT(reader->IdsUpTo(id), ElementsAre(id));
  }
  EXPECT_LE(store_.questions() - before, 20);
}

TEST_F(EventFeedTest, SlowWatcherReadsTheStoreAndMissesNothing) {
  Reader slow(feed_, {.kind_prefix = "link."}, std::nullopt), quick(feed_, {}, std::nullopt);
  EXPECT_THAT(slow.Ids(), IsEmpty());
  AppendMany(50);  // the ring keeps 8
  AppendMany(20, "job.ended");
  AppendMany(1);
  EXPECT_EQ(71u, quick.IdsUpTo(71).size());
  const std::vector<int64_t> ids = slow.IdsUpTo(71);
  ASSERT_EQ(51u, ids.size());
  EXPECT_EQ(50, ids[49]);
  EXPECT_EQ(1, slow.wakes());
}

TEST_F(EventFeedTest, WatcherThatIsOutrunIsTold) {
  Reader slow(feed_, {}, std::nullopt), at_start(feed_, {}, 0), in_time(feed_, {}, std::nullopt);
  AppendMany(50);
  EXPECT_EQ(50u, in_time.IdsUpTo(50).size());
  store_.ForgetBefore(31);
  // Only where the ring does not reach back so far; who wants all that there is takes what there
  // is.
  Reader quick(feed_, {}, 30);
  EXPECT_EQ(20u, quick.IdsUpTo(50).size());
  EXPECT_EQ(absl::StatusCode::kOutOfRange, slow.Error().code());
  EXPECT_THAT(std::string(slow.Error().message()), HasSubstr("the oldest is 31"));
  EXPECT_EQ(31, at_start.Ids().front());
}

TEST_F(EventFeedTest, FailingStoreIsAskedAgain) {
  AppendMany(1);
  Reader reader(feed_, {}, std::nullopt);
  EXPECT_THAT(reader.Ids(), IsEmpty());
  store_.Fail(absl::UnavailableError("disk"));
  AppendMany(2);
  EXPECT_EQ(absl::StatusCode::kUnavailable, Reader(feed_, {}, 0).Error().code());
  store_.Fail(absl::OkStatus());
  AppendMany(1);
  EXPECT_THAT(reader.IdsUpTo(4), ElementsAre(2, 3, 4));
}

TEST_F(EventFeedTest, RingBeginsAnewAfterAPauseWithoutWatchers) {
  for (int round = 0; round < 3; ++round) {
    const int64_t newest = kept_.KeptEvents()->newest;
    AppendMany(5);
    Reader reader(feed_, {}, newest);
    EXPECT_EQ(5u, reader.Ids().size());
    AppendMany(2);
    EXPECT_THAT(reader.IdsUpTo(newest + 7), ElementsAre(newest + 6, newest + 7));
  }
}

TEST(EventFeedRestartTest, PlacesAreGoodAfterARestart) {
  std::string directory = testing::TempDir() + "/event_feed_XXXXXX";
  ASSERT_NE(nullptr, mkdtemp(directory.data()));
  const std::string path = directory + "/events.db";
  for (int64_t run = 0; run < 3; ++run) {
    auto store = SqliteStore::Open(path);
    ASSERT_TRUE(store.ok()) << store.status();
    EventFeed feed(store->get());
    Reader reader(feed, {}, 3 * run);
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE((*store)->Apply(AppendEvents{{Happened("info", "a")}}).ok());
      feed.Look();
    }
    const int64_t first = 3 * run + 1;
    EXPECT_THAT(reader.IdsUpTo(first + 1), ElementsAre(first, first + 1));
    // Nobody has read this one when the daemon stops.
    ASSERT_TRUE((*store)->Apply(AppendEvents{{Happened("info", "b")}}).ok());
    if (run < 2) continue;
    EXPECT_THAT(Reader(feed, {.kind_prefix = "b"}, 1).Ids(), ElementsAre(3, 6, 9));
  }
  std::filesystem::remove_all(directory);
}

// Appenders race with each other, with groups of commits and with watchers that come at any time;
// each must see what ListEvents gives for its filter from its place on, once and in order. On a
// disk commits take long and groups are large, in memory they are small.
class EventFeedRaceTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    directory_ = testing::TempDir() + "/event_race_XXXXXX";
    ASSERT_NE(nullptr, mkdtemp(directory_.data()));
    if (!GetParam()) {
      store_ = std::make_unique<ScratchStore>();
      return;
    }
    auto store = SqliteStore::Open(directory_ + "/events.db");
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }

  // The last of those who are `left` appends the last event of all, which every filter picks.
  void AppendSome(uint64_t seed, EventFeed& feed, std::atomic<int>& left) {
    std::mt19937_64 random(seed);
    const char* const severities[] = {"info", "warning", "error"};
    const int count = FullTier() ? 5000 : 300;
    for (int i = 0; i < count; ++i) {
      AppendEvents append;
      for (uint64_t n = random() % 3 + 1; n > 0; --n) {
        append.events.push_back(Happened(severities[random() % 3],
                                         absl::StrCat("kind.", random() % 4),
                                         absl::StrCat("object:", random() % 3)));
      }
      store_->Submit(std::move(append), [&feed](absl::Status status) {
        EXPECT_TRUE(status.ok());
        feed.Look();
      });
      if (i % 16 == 0) {
        ASSERT_TRUE(store_->Apply(AppendEvents{}).ok());
      }
    }
    if (--left > 0) return;
    ASSERT_TRUE(store_->Apply(AppendEvents{{Happened("error", "kind.1 end", "object:1")}}).ok());
    feed.Look();
  }

  struct Seen {
    EventFilter filter;
    std::vector<EventRecord> events;
  };

  // Goes away and comes back with its place, until the last event of all.
  static void WatchAll(EventFeed& feed, Seen& seen) {
    std::mutex mu;
    std::condition_variable woken;
    bool is_awake = false;
    int64_t place = 0;
    for (bool over = false; !over;) {
      auto watch = feed.Watch(seen.filter, place, [&] {
        std::lock_guard lock(mu);
        is_awake = true;
        woken.notify_all();
      });
      ASSERT_TRUE(watch.ok()) << watch.status();
      for (int pages = 0; pages < 10 && !over; ++pages) {
        const auto events = (*watch)->Next(7);
        ASSERT_TRUE(events.ok()) << events.status();
        for (const auto& event : *events) {
          seen.events.push_back(*event);
          place = event->id;
          over = event->kind == "kind.1 end";
        }
        if (!events->empty()) continue;
        std::unique_lock lock(mu);
        woken.wait(lock, [&] { return std::exchange(is_awake, false); });
      }
    }
  }

  std::string directory_;
  std::unique_ptr<Store> store_;
};

TEST_P(EventFeedRaceTest, EveryWatcherSeesWhatTheStoreKept) {
  constexpr int kAppenders = 4, kWatchers = 6;
  const uint64_t seed = TestSeed();
  EventFeed feed(store_.get(), /*kept=*/64);
  std::vector<std::thread> threads;
  std::atomic<int> left = kAppenders;
  for (int t = 0; t < kAppenders; ++t) {
    threads.emplace_back([&, t] { AppendSome(seed + static_cast<uint64_t>(t), feed, left); });
  }
  std::vector<Seen> seen(kWatchers);
  for (int w = 0; w < kWatchers; ++w) {
    EventFilter& filter = seen[w].filter;
    if (w % 2 == 1) filter.kind_prefix = "kind.1";
    if (w % 3 == 1) filter.object = "object:1";
    if (w % 4 == 1) filter.min_severity = "warning";
    threads.emplace_back([&, w] { WatchAll(feed, seen[w]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (Seen& one : seen) {
    one.filter.limit = 1'000'000;
    EXPECT_EQ(*store_->Events(one.filter), one.events);
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, EventFeedRaceTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "OnDisk" : "InMemory"; });

}  // namespace
}  // namespace coppice::event_feed_test
