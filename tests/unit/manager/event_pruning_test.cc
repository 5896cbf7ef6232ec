// Old events: by number at once, by age only under a clock that goes evenly.
#include "daemon/manager/event_pruning.h"

#include <gtest/gtest.h>

#include "tests/unit/manager/manager_fixture.h"

namespace coppice {
namespace {

class TurnedClock final : public Clock {
 public:
  absl::Time Now() const override { return wall; }
  absl::Duration Monotonic() const override { return monotonic; }
  void Pass(absl::Duration time) {
    wall += time;
    monotonic += time;
  }

  absl::Time wall = absl::FromUnixSeconds(1'700'000'000);
  absl::Duration monotonic = absl::Seconds(50);
};

class EventPruningTest : public testing::Test {
 protected:
  void Append(int count) {
    AppendEvents append;
    for (int i = 0; i < count; ++i) {
      append.events.push_back({0, clock_.wall, "info", "test.event", "fabric", "words"});
    }
    ASSERT_TRUE(store_.Apply(append).ok());
  }
  int64_t Kept() {
    const EventRange range = *store_.KeptEvents();
    return range.newest - range.oldest + 1;
  }
  void Run(int64_t keep, absl::Duration age = absl::Hours(24)) {
    pruning_.Run(keep, age);
    calls_.AwaitAll();
  }

  MemoryStore store_;
  StoreCalls calls_{&store_};
  TurnedClock clock_;
  EventPruning pruning_{&calls_, &clock_};
};

TEST_F(EventPruningTest, StormIsDroppedInOneRun) {
  Append(30'000);
  Run(1000);
  EXPECT_EQ(Kept(), 1000);
  Run(1000);
  EXPECT_EQ(Kept(), 1000);
}

TEST_F(EventPruningTest, ClockThatStepsDropsNothing) {
  Append(10);
  Run(1000);
  clock_.Pass(absl::Hours(2));
  Run(1000);
  clock_.wall += absl::Hours(24 * 365);
  Run(1000);
  clock_.Pass(EventPruning::kEvenFor / 2);
  Run(1000);
  EXPECT_EQ(Kept(), 10);
  clock_.wall -= absl::Hours(24 * 365);  // set right in time
  clock_.Pass(2 * EventPruning::kEvenFor);
  Run(1000);
  EXPECT_EQ(Kept(), 10);
  clock_.Pass(absl::Hours(48));
  Run(1000);
  EXPECT_EQ(Kept(), 0);
}

}  // namespace
}  // namespace coppice
