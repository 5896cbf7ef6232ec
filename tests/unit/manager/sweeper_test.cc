// The thread that reads the subnet: who runs, who waits, what is told of failures.
#include "daemon/manager/sweeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

#include "tests/unit/manager/manager_fixture.h"

namespace coppice::sweeper_test {
namespace {

using testing::ElementsAre;

// A gate that steps wait at.
class Gate {
 public:
  void Open() {
    std::lock_guard lock(mu_);
    open_ = true;
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock lock(mu_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void AwaitArrival(int arrivals = 1) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return arrived_ >= arrivals; });
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool open_ = false;
  int arrived_ = 0;
};

class SweeperTest : public testing::Test {
 protected:
  Sweeper::Duties Duties() {
    return {[this](bool in_haste, absl::Duration) { return Full(in_haste); },
            [this] { return Other(light_); }, [this](absl::Duration) { return Other(counters_); },
            [this] { return repairs_.Pass(), true; },
            [this](SweepKind kind, const absl::Status& status) {
              Tell(status.ok() ? "recovers " : "fails ", kind);
            }};
  }
  Sweeper::FullSweep Full(bool in_haste) {
    ++fulls_;
    if (in_haste) ++hasty_;
    if (on_full_) on_full_();
    Sweeper::FullSweep sweep;
    std::lock_guard lock(mu_);
    if (!full_.ok()) {
      sweep.view = full_;
      return sweep;
    }
    auto view = std::make_shared<FabricView>();
    view->routes_settled = true;
    sweep.view = Sweeper::View(view);
    sweep.outcome = {true, false, false, true, true, true};
    sweep.mads = {10, 2, 1};
    return sweep;
  }
  struct Script {
    std::function<void()> hook;
    absl::Status status;
    bool has_changed = false;
    std::atomic<int> runs = 0;
  };
  Sweeper::OtherSweep Other(Script& script) {
    if (script.hook) script.hook();
    std::lock_guard lock(mu_);
    ++script.runs;
    return {script.status, script.has_changed, {1, 0, 0}};
  }
  void Tell(const char* what, SweepKind kind) {
    std::lock_guard lock(mu_);
    told_.push_back(what + ObjectOf(kind));
    changed_.notify_all();
  }
  std::vector<std::string> AwaitTold(size_t count) {
    std::unique_lock lock(mu_);
    changed_.wait(lock, [&] { return told_.size() >= count; });
    return told_;
  }

  std::mutex mu_;
  std::condition_variable changed_;
  std::vector<std::string> told_;
  absl::Status full_;
  std::atomic<int> fulls_ = 0, hasty_ = 0;
  std::function<void()> on_full_;
  Script light_, counters_;
  Gate repairs_;
  ManualClock clock_;
};

TEST_F(SweeperTest, WithoutTheThreadWhoAsksSweeps) {
  Sweeper sweeper(Duties(), &clock_, {});
  EXPECT_TRUE(sweeper.Sweep().ok());
  EXPECT_EQ(1, fulls_);
  sweeper.Start();
  sweeper.Stop();
  EXPECT_TRUE(sweeper.Sweep().ok());
  const SweepStanding standing = sweeper.standing();
  EXPECT_EQ(static_cast<uint64_t>(fulls_), standing.full.count);
  EXPECT_EQ(10u * fulls_, standing.mads_sent);
  EXPECT_EQ(clock_.Now(), standing.full.last_time);
  EXPECT_TRUE(standing.routes_settled);
  EXPECT_EQ(absl::InfiniteDuration(), standing.light.period);
}

TEST_F(SweeperTest, ARequestIsNextAfterTheStepUnderWay) {
  Gate gate;
  light_.hook = [&] { gate.Pass(); };
  Sweeper sweeper(Duties(), &clock_,
                  {absl::InfiniteDuration(), absl::Microseconds(1), absl::InfiniteDuration()});
  sweeper.Start();
  gate.AwaitArrival();
  const int before = fulls_;
  auto first = std::async(std::launch::async, [&] { return sweeper.Sweep().ok(); });
  auto second = std::async(std::launch::async, [&] { return sweeper.Sweep().ok(); });
  EXPECT_EQ(before, fulls_);
  gate.Open();
  EXPECT_TRUE(first.get());
  EXPECT_TRUE(second.get());
  EXPECT_GE(fulls_, before + 1);
  EXPECT_LE(fulls_, before + 2);
  sweeper.Stop();
}

TEST_F(SweeperTest, StopLeavesNobodyWaiting) {
  Gate gate;
  on_full_ = [&] { gate.Pass(); };
  Sweeper sweeper(Duties(), &clock_, {});
  sweeper.Start();
  gate.AwaitArrival();
  auto waiter = std::async(std::launch::async, [&] { return sweeper.Sweep().ok(); });
  auto stopper = std::async(std::launch::async, [&] { sweeper.Stop(); });
  gate.Open();
  stopper.get();
  EXPECT_TRUE(waiter.get());
}

TEST_F(SweeperTest, AChangeThatALightSweepSeesIsRead) {
  light_.has_changed = true;
  Gate again;
  on_full_ = [&] {
    if (fulls_ > 1) again.Pass();
  };
  again.Open();
  Sweeper sweeper(Duties(), &clock_,
                  {absl::InfiniteDuration(), absl::Microseconds(1), absl::InfiniteDuration()});
  sweeper.Start();
  again.AwaitArrival();
  sweeper.Stop();
  EXPECT_GE(light_.runs, 1);
}

TEST_F(SweeperTest, AKindThatFailsIsToldOnceAndSoIsItsEnd) {
  full_ = absl::UnavailableError("first");
  Sweeper sweeper(Duties(), &clock_, {});
  EXPECT_FALSE(sweeper.Sweep().ok());
  full_ = absl::UnavailableError("second");
  EXPECT_EQ("second", sweeper.Sweep().status().message());
  EXPECT_THAT(AwaitTold(1), ElementsAre("fails sweep:full"));
  EXPECT_EQ("UNAVAILABLE: second", sweeper.standing().full.last_error);
  EXPECT_EQ(2u, sweeper.standing().full.failed);
  full_ = absl::OkStatus();
  EXPECT_TRUE(sweeper.Sweep().ok());
  EXPECT_THAT(AwaitTold(2), ElementsAre("fails sweep:full", "recovers sweep:full"));
  EXPECT_EQ("", sweeper.standing().full.last_error);
}

TEST_F(SweeperTest, WhatASourceDoesNotHaveIsNoError) {
  counters_.status = light_.status = absl::UnimplementedError("none");
  Gate asked;
  asked.Open();
  counters_.hook = [&] { asked.Pass(); };
  light_.hook = [&] { asked.Pass(); };
  Sweeper sweeper(Duties(), &clock_,
                  {absl::InfiniteDuration(), absl::Microseconds(1), absl::Microseconds(1)});
  sweeper.Start();
  asked.AwaitArrival(2);
  EXPECT_TRUE(sweeper.Sweep().ok());
  EXPECT_TRUE(sweeper.Sweep().ok());
  sweeper.Stop();
  EXPECT_EQ(1, light_.runs);
  EXPECT_EQ(1, counters_.runs);
  EXPECT_EQ(absl::InfiniteDuration(), sweeper.standing().light.period);
  EXPECT_EQ(0u, sweeper.standing().counters.failed);
  EXPECT_TRUE(told_.empty());
}

// Each repair asks for the next one.
TEST_F(SweeperTest, RepairsWithoutEndLeaveTheTimetableItsTurns) {
  Gate asked;
  asked.Open();
  light_.hook = [&] { asked.Pass(); };
  Sweeper::Duties duties = Duties();
  Sweeper* waker = nullptr;
  duties.repair = [&] { return waker->WakeRepair(), true; };
  Sweeper sweeper(std::move(duties), &clock_,
                  {absl::InfiniteDuration(), absl::Microseconds(1), absl::InfiniteDuration()});
  waker = &sweeper;
  sweeper.WakeRepair();
  sweeper.Start();
  asked.AwaitArrival(3);
  sweeper.Stop();
}

TEST_F(SweeperTest, ARepairUnderWayIsAStep) {
  std::atomic<bool> repairs = false, was_beside = false;
  on_full_ = [&] { was_beside = was_beside || repairs; };
  Sweeper::Duties duties = Duties();
  duties.repair = [&] {
    repairs = true;
    repairs_.Pass();
    repairs = false;
    return true;
  };
  Sweeper sweeper(std::move(duties), &clock_, {});
  sweeper.Start();
  ASSERT_TRUE(sweeper.Sweep().ok());
  sweeper.WakeRepair();
  repairs_.AwaitArrival();
  auto stopper = std::async(std::launch::async, [&] { sweeper.Stop(); });
  auto asked = std::async(std::launch::async, [&] { return sweeper.Sweep().ok(); });
  repairs_.Open();
  stopper.get();
  EXPECT_TRUE(asked.get());
  EXPECT_FALSE(was_beside);
}

TEST_F(SweeperTest, RepairsRunBetweenSweeps) {
  repairs_.Open();
  Sweeper sweeper(Duties(), &clock_, {});
  sweeper.Start();
  EXPECT_TRUE(sweeper.Sweep().ok());
  sweeper.WakeRepair();
  repairs_.AwaitArrival();
  sweeper.Stop();
}

}  // namespace
}  // namespace coppice::sweeper_test
