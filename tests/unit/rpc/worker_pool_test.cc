#include "daemon/rpc/calls/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/support/manual_clock.h"

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

// Callers "a..." are of a tenant of weight 3, "b..." of one of weight 1, the others of none.
WorkerPool::Share ShareOfTest(const std::string& caller) {
  if (caller[0] == 'a') return {"a", 3};
  if (caller[0] == 'b') return {"b", 1};
  return {};
}

TEST(WorkerPoolTest, TenantsHaveTimeByWeightAndTheirCallersTakeTurns) {
  std::vector<std::string> ran;  // the one thread's
  ManualClock clock;
  {
    absl::Notification go;
    WorkerPool pool(1, 0, ShareOfTest, &clock);
    pool.Submit([&] { go.WaitForNotification(); });
    const auto submit = [&](const std::string& caller, absl::Duration takes) {
      pool.Submit(
          [&ran, &clock, caller, takes] {
            ran.push_back(caller);
            clock.Advance(takes);
          },
          caller);
    };
    // b's tasks are twice as long: it has every seventh.
    for (int i = 0; i < 12; ++i) submit(i < 6 ? "a1" : "a2", absl::Seconds(1));
    for (int i = 0; i < 3; ++i) submit("b1", absl::Seconds(2));
    go.Notify();
  }
  std::string order;
  for (const std::string& caller : ran) order += caller[0];
  const size_t second = order.find('b', order.find('b') + 1);
  const auto before = static_cast<int>(std::count(order.begin(), order.begin() + second, 'a'));
  EXPECT_GE(before, 6) << order;
  EXPECT_LE(before, 7) << order;
  std::erase_if(ran, [](const std::string& caller) { return caller[0] != 'a'; });
  for (size_t i = 2; i < ran.size(); ++i) EXPECT_NE(ran[i], ran[i - 1]) << "a1 and a2 take turns";
}

// Whoever asks for one thing after another is charged as who has a line.
TEST(WorkerPoolTest, ADebtIsNotForgottenBetweenTwoTasks) {
  std::vector<std::string> ran;
  ManualClock clock;
  {
    std::function<void()> next;
    absl::Notification go;
    WorkerPool pool(1, 0, ShareOfTest, &clock);
    next = [&] {
      ran.push_back("a");
      clock.Advance(absl::Seconds(30));  // ten of b's
      if (std::count(ran.begin(), ran.end(), "a") < 3) pool.Submit(next, "a1");
    };
    pool.Submit([&] { go.WaitForNotification(); });
    pool.Submit(next, "a1");
    for (int i = 0; i < 30; ++i) {
      pool.Submit(
          [&] {
            ran.push_back("b");
            clock.Advance(absl::Seconds(1));
          },
          "b1");
    }
    go.Notify();
  }
  std::string order;
  for (const std::string& caller : ran) order += caller;
  const size_t first = order.find('a'), second = order.find('a', first + 1);
  ASSERT_NE(second, std::string::npos) << order;
  EXPECT_GE(second - first, 10u) << order;
  EXPECT_LE(second - first, 12u) << order;
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
