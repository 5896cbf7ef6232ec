// Long work on the loop leaves others their turns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "agents/node/event_loop.h"
#include "agents/node/job_keeper.h"

namespace coppice::loop_turns_test {
namespace {

using ::testing::ElementsAre;

class LoopTurnsTest : public ::testing::Test {
 protected:
  // A work of so many steps, which writes its name at each.
  std::function<bool()> Work(char name, size_t steps) {
    return [this, name, left = steps]() mutable {
      said_ += name;
      return --left > 0;
    };
  }
  void RunUntilSaid(size_t steps) {
    loop_->RunUntil([&] { return said_.size() >= steps; }, std::chrono::minutes(1));
    EXPECT_EQ(said_.size(), steps);
  }

  const std::unique_ptr<EventLoop> loop_ = *EventLoop::Create();
  LoopTurns turns_{loop_.get()};
  std::string said_;
};

TEST_F(LoopTurnsTest, OthersRunBetweenSoManySteps) {
  constexpr size_t kSteps = 5 * LoopTurns::kStepsOfTurn + 1;
  size_t seen = 0, most = 0;
  std::function<void()> look = [&] {
    most = std::max(most, said_.size() - seen);
    seen = said_.size();
    loop_->Post(look);
  };
  loop_->Post(look);
  turns_.Add(Work('a', kSteps));
  RunUntilSaid(kSteps);
  EXPECT_GT(seen, 0u);
  EXPECT_LE(most, LoopTurns::kStepsOfTurn);
}

TEST_F(LoopTurnsTest, WorksTakeTurns) {
  constexpr size_t kSteps = 3 * LoopTurns::kStepsOfTurn;
  turns_.Add(Work('a', kSteps));
  EXPECT_EQ(said_, std::string(LoopTurns::kStepsOfTurn, 'a'));  // at once
  turns_.Add(Work('b', 2));
  RunUntilSaid(kSteps + 2);
  const auto after = said_.substr(LoopTurns::kStepsOfTurn, 4);
  EXPECT_EQ(std::count(after.begin(), after.end(), 'b'), 2) << after;
}

TEST_F(LoopTurnsTest, AWorkMayAddAnother) {
  turns_.Add([this, left = 2]() mutable {
    turns_.Add(Work('b', 1));
    said_ += 'a';
    return --left > 0;
  });
  EXPECT_EQ(said_, "abab");
}

TEST_F(LoopTurnsTest, WhatIsNotDoneIsDropped) {
  {
    LoopTurns gone(loop_.get());
    gone.Add(Work('a', 2 * LoopTurns::kStepsOfTurn));
  }
  turns_.Add(Work('b', LoopTurns::kStepsOfTurn + 1));  // its pause is over after that of `gone`
  RunUntilSaid(2 * LoopTurns::kStepsOfTurn + 1);
  EXPECT_EQ(std::count(said_.begin(), said_.end(), 'a'), LoopTurns::kStepsOfTurn);
}

TEST_F(LoopTurnsTest, EachProcessIsLookedAtOnce) {
  std::map<ProcessIdentity, int> looks;
  const auto is_gone = [&](const ProcessIdentity& one) { return ++looks[one], one.pid % 2 == 0; };
  std::vector<ProcessIdentity> named;
  for (int i = 0; i < 1000; ++i) named.push_back({i % 3 + 1, 7});
  named.push_back({2, 8});
  std::set<ProcessIdentity> found;
  int calls = 0;
  FindGone(
      named, [&](const auto& gone) { found = gone, ++calls; }, turns_, is_gone);
  EXPECT_EQ(calls, 1);
  EXPECT_THAT(found, ElementsAre(ProcessIdentity{2, 7}, ProcessIdentity{2, 8}));
  ASSERT_EQ(looks.size(), 4u);
  for (const auto& [process, count] : looks) EXPECT_EQ(count, 1) << process.pid;
  FindGone(
      {}, [&](const auto& gone) { found = gone, ++calls; }, turns_, is_gone);
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(found.empty());
}

}  // namespace
}  // namespace coppice::loop_turns_test
