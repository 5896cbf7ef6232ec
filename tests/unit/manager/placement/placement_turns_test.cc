// Turns: in the order in which they are asked for, alone, and over when a caller gives up.
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/manager/placement/placement_snapshot.h"
#include "gtest/gtest.h"

namespace coppice::placement_turns_test {
namespace {

absl::Status WaitOn() { return absl::OkStatus(); }

void WaitFor(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!done()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::yield();
  }
}

TEST(PlacementTurns, WhoTakesWaitsForTheTurnOfAnother) {
  PlacementTurns turns;
  EXPECT_TRUE(turns.Take(false, WaitOn, [] { return true; }).value());
  EXPECT_FALSE(turns.Take(false, WaitOn, [] { return false; }).value());
  auto turn = turns.Begin(WaitOn);
  ASSERT_TRUE(turn.ok());
  std::vector<int> order;
  std::thread other([&] {
    EXPECT_TRUE(turns
                    .Take(false, WaitOn,
                          [&] {
                            order.push_back(2);
                            return true;
                          })
                    .ok());
  });
  WaitFor([&] { return turns.waiting() == 1; });
  EXPECT_TRUE(turns
                  .Take(true, WaitOn,
                        [&] {
                          order.push_back(1);
                          return true;
                        })
                  .value());
  turn = absl::UnknownError("over");
  other.join();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_EQ(turns.waiting(), 0u);
}

TEST(PlacementTurns, FollowEachOtherBeforeAnybodyTakes) {
  PlacementTurns turns;
  auto first = turns.Begin(WaitOn);
  std::vector<int> order;
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    EXPECT_TRUE(turns
                    .Take(false, WaitOn,
                          [&] {
                            order.push_back(9);
                            return true;
                          })
                    .ok());
  });
  for (uint32_t i = 1; i <= 3; ++i) {
    WaitFor([&] { return turns.waiting() == i; });
    threads.emplace_back([&, i] {
      const auto turn = turns.Begin(WaitOn);
      order.push_back(static_cast<int>(i));
    });
  }
  WaitFor([&] { return turns.waiting() == 4; });
  first = absl::UnknownError("over");
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 9}));
}

TEST(PlacementTurns, WhoGivesUpIsNotWaitedFor) {
  PlacementTurns turns;
  std::optional<absl::StatusOr<PlacementTurns::Turn>> turn(turns.Begin(WaitOn));
  const auto give_up = [] { return absl::CancelledError("gone"); };
  EXPECT_EQ(turns.Begin(give_up).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(turns.Take(false, give_up, [] { return true; }).status().code(),
            absl::StatusCode::kCancelled);
  turn.reset();
  EXPECT_TRUE(turns.Take(false, give_up, [] { return true; }).ok());
  EXPECT_TRUE(turns.Begin(give_up).ok());
}

}  // namespace
}  // namespace coppice::placement_turns_test
