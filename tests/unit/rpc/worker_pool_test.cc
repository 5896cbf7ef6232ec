#include "daemon/rpc/calls/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"

namespace coppice {
namespace {

TEST(WorkerPoolTest, CallersTakeTurns) {
  std::vector<std::string> ran;  // the one thread's
  {
    WorkerPool pool(1);
    absl::Notification go;
    pool.Submit([&] { go.WaitForNotification(); });
    for (const char* caller : {"a", "a", "a", "b", "b"}) {
      EXPECT_TRUE(
          pool.SubmitUnlessFull([&ran, caller] { ran.push_back(caller); }, 10, caller).ok());
    }
    EXPECT_TRUE(pool.OthersWait("a"));
    go.Notify();
  }
  EXPECT_THAT(ran, testing::ElementsAre("a", "b", "a", "b", "a"));
}

TEST(WorkerPoolTest, OneCallerLeavesAThreadToTheOthers) {
  std::atomic<int> ran = 0;
  {
    WorkerPool pool(3);
    absl::Notification go, others;
    for (int i = 0; i < 5; ++i) {
      pool.Submit(
          [&] {
            go.WaitForNotification();
            ++ran;
          },
          "a");
    }
    pool.Submit([&] { others.Notify(); }, "b");
    others.WaitForNotification();
    EXPECT_FALSE(pool.OthersWait("a"));
    EXPECT_GE(pool.waiting(), 3u);
    const auto ticket = pool.SubmitUnlessFull([&] { ++ran; }, 10, "a");
    ASSERT_TRUE(ticket.ok()) << ticket.status();
    EXPECT_TRUE(pool.Withdraw(*ticket));
    EXPECT_FALSE(pool.Withdraw(*ticket));
    go.Notify();
  }
  EXPECT_EQ(ran, 5);
}

}  // namespace
}  // namespace coppice
