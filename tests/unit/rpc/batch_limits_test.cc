// What a batch may not exceed before it is copied, and how many may wait for a thread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "daemon/rpc/calls/worker_pool.h"
#include "daemon/rpc/conversion/trees_conversion.h"

namespace coppice::batch_limits_test {
namespace {

using ::testing::HasSubstr;

constexpr int kMaxRanks = 1 << 22;

std::string WordsOf(const v1::BatchCreateTreesRequest& request) {
  const absl::Status status = FromProto(request, 1u << 24).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

v1::BatchCreateTreesRequest OfJob() {
  v1::BatchCreateTreesRequest request;
  request.set_job_id("1");
  return request;
}

TEST(BatchLimitsTest, AsLongAsMayBeIsConverted) {
  v1::BatchCreateTreesRequest request = OfJob();
  request.mutable_grid()->mutable_rank_order()->Resize(kMaxRanks, 0);
  request.mutable_grid()->mutable_sizes()->Resize(32, 1);
  request.mutable_grid()->mutable_axes()->Resize(32, 1);
  EXPECT_TRUE(FromProto(request, 8).ok());
  request = OfJob();
  request.add_communicators()->mutable_ranks()->Resize(kMaxRanks, 0);
  EXPECT_TRUE(FromProto(request, kMaxRanks).ok());
}

TEST(BatchLimitsTest, LongerListsAreRefused) {
  v1::BatchCreateTreesRequest request = OfJob();
  request.mutable_grid()->mutable_rank_order()->Resize(kMaxRanks + 1, 0);
  EXPECT_THAT(WordsOf(request), HasSubstr("grid.rank_order: 4194305 are given"));
  request = OfJob();
  request.mutable_grid()->mutable_axes()->Resize(33, 0);
  EXPECT_THAT(WordsOf(request), HasSubstr("grid.axes: 33 are given, the limit is 32"));
  request = OfJob();
  for (int c = 0; c < 2; ++c) {
    request.add_communicators()->mutable_ranks()->Resize(kMaxRanks / 2 + 1, 0);
  }
  EXPECT_THAT(WordsOf(request), HasSubstr("ranks together; split the batch"));
  request.mutable_communicators(1)->clear_ranks();
  EXPECT_THAT(WordsOf(request), HasSubstr("communicators[1]: has no ranks"));
}

TEST(WorkerPoolTest, NoMoreWaitThanMay) {
  absl::Notification started, go_on;
  int done = 0;
  {
    WorkerPool pool(1);
    EXPECT_TRUE(pool.SubmitUnlessFull(
                        [&] {
                          started.Notify();
                          go_on.WaitForNotification();
                        },
                        1)
                    .ok());
    started.WaitForNotification();
    EXPECT_TRUE(pool.SubmitUnlessFull([&] { ++done; }, 2).ok());
    EXPECT_TRUE(pool.Room(2, "").ok());
    EXPECT_TRUE(pool.SubmitUnlessFull([&] { ++done; }, 2).ok());
    EXPECT_EQ(pool.Room(2, ""), pool.SubmitUnlessFull([&] { done += 10; }, 2).status());
    EXPECT_TRUE(absl::IsUnavailable(pool.Room(2, "")));
    pool.Submit([&] { ++done; });  // no such bound
    go_on.Notify();
  }
  EXPECT_EQ(done, 3);
}

TEST(WorkerPoolTest, CallersTakeTurns) {
  absl::Notification started, go_on;
  std::string order;
  {
    WorkerPool pool(1);
    pool.Submit([&] {
      started.Notify();
      go_on.WaitForNotification();
    });
    started.WaitForNotification();
    const auto submit = [&](char caller) {
      return pool.SubmitUnlessFull([&order, caller] { order += caller; }, 3,
                                   std::string(1, caller));
    };
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(submit('a').ok());
    EXPECT_FALSE(submit('a').ok());
    const auto withdrawn = submit('c');
    EXPECT_TRUE(submit('b').ok());
    ASSERT_TRUE(withdrawn.ok());
    EXPECT_TRUE(pool.Withdraw(*withdrawn));
    EXPECT_EQ(pool.waiting(), 4u);
    EXPECT_TRUE(pool.OthersWait("a"));
    EXPECT_TRUE(pool.OthersWait("c"));
    go_on.Notify();
  }
  EXPECT_EQ(order, "abaa");
}

TEST(WorkerPoolTest, OneCallerHasNeverAllThreads) {
  absl::Notification go_on, other_has_run;
  std::atomic<int> running = 0, most = 0;
  {
    WorkerPool pool(3);
    for (int i = 0; i < 6; ++i) {
      ASSERT_TRUE(pool.SubmitUnlessFull(
                          [&] {
                            const int now = ++running;
                            if (now > most) most = now;
                            go_on.WaitForNotification();
                            --running;
                          },
                          16, "a")
                      .ok());
    }
    ASSERT_TRUE(pool.SubmitUnlessFull([&] { other_has_run.Notify(); }, 16, "b").ok());
    other_has_run.WaitForNotification();
    go_on.Notify();
  }
  EXPECT_LE(most, 2);
  EXPECT_EQ(running, 0);
}

TEST(WorkerPoolTest, ManyLongLinesKeepNobodyOut) {
  absl::Notification started, go_on;
  WorkerPool pool(1);
  pool.Submit([&] {
    started.Notify();
    go_on.WaitForNotification();
  });
  started.WaitForNotification();
  constexpr size_t kMax = 4;
  size_t last = kMax;
  for (int caller = 0; caller < 100; ++caller) {
    size_t waiting = 0;
    absl::Status refused;
    while (refused.ok()) {
      refused = pool.SubmitUnlessFull([] {}, kMax, std::to_string(caller)).status();
      if (refused.ok()) ++waiting;
    }
    EXPECT_GE(waiting, 1u) << caller;
    EXPECT_LE(waiting, last) << caller;
    EXPECT_NE(refused.message().find(absl::StrCat("your calls ", waiting, " wait")),
              absl::string_view::npos)
        << refused;
    last = waiting;
  }
  go_on.Notify();
}

TEST(WorkerPoolTest, WhatIsWithdrawnIsDroppedAtOnceAndMakesRoom) {
  absl::Notification started, go_on;
  int done = 0;
  const auto held = std::make_shared<int>(7);
  {
    WorkerPool pool(1);
    const auto running = pool.SubmitUnlessFull(
        [&] {
          started.Notify();
          go_on.WaitForNotification();
        },
        1);
    started.WaitForNotification();
    EXPECT_TRUE(pool.SubmitUnlessFull([&] { ++done; }, 2).ok());
    const auto waiting = pool.SubmitUnlessFull([&done, held] { done += 10 * *held; }, 2);
    ASSERT_TRUE(waiting.ok());
    EXPECT_EQ(held.use_count(), 2);
    EXPECT_TRUE(pool.Withdraw(*waiting));
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_EQ(pool.waiting(), 1u);
    EXPECT_FALSE(pool.Withdraw(*waiting));
    EXPECT_FALSE(pool.Withdraw(*running));
    EXPECT_TRUE(pool.SubmitUnlessFull([&] { ++done; }, 2).ok());
    go_on.Notify();
  }
  EXPECT_EQ(done, 2);
}

}  // namespace
}  // namespace coppice::batch_limits_test
