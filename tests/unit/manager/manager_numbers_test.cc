// What the daemon tells of itself waits for nothing: neither for a sweep nor for the database.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/unit/manager/manager_fixture.h"

namespace coppice::manager_numbers_test {
namespace {

class ManagerNumbersTest : public ManagerTest {};

TEST_F(ManagerNumbersTest, NumbersComeWhileASweepHangsAndTheStoreHoldsBack) {
  Boot();
  const JobId job = NewJob();
  ASSERT_TRUE(Create(TreeOf(job)).ok());
  std::promise<void> begun, go_on;
  port_.OnSweep([&, is_first = std::make_shared<std::atomic<bool>>(true)] {
    if (!is_first->exchange(false)) return;
    begun.set_value();
    go_on.get_future().wait();
  });
  store_.HoldBack();
  std::thread sweep([this] { manager_->Sweep().IgnoreError(); });
  begun.get_future().wait();
  Answer<TreeView> waiting = StartCreate(TreeOf(job));
  const DaemonCounts counts = manager_->Counts();
  EXPECT_EQ(1u, counts.granted_trees);
  EXPECT_EQ(1u, counts.active_jobs);
  EXPECT_EQ(1u, counts.trees.granted);
  EXPECT_GT(counts.entries_taken, 0u);
  EXPECT_EQ(1u, manager_->Sweeps().full.count);
  EXPECT_NE(nullptr, manager_->fabric());
  EXPECT_GT(manager_->Statistics().mutations, 0u);
  EXPECT_FALSE(waiting.answered());
  go_on.set_value();
  store_.LetGo();
  sweep.join();
  EXPECT_TRUE(waiting.Get().ok());
  EXPECT_EQ(2u, manager_->Counts().trees.granted);
}

}  // namespace
}  // namespace coppice::manager_numbers_test
