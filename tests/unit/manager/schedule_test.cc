// The timetable: what is due when, played through without threads and without a clock.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "daemon/manager/sweeper.h"
#include "tests/support/tier.h"

namespace coppice::schedule_test {
namespace {

constexpr SweepPeriods kPeriods{absl::Minutes(5), absl::Seconds(5), absl::Seconds(10)};
constexpr FullSweepOutcome kSame{true, false, false, true, true, true};
constexpr FullSweepOutcome kChanged{true, true, true, false, true, true};
constexpr FullSweepOutcome kUnsettled{true, false, false, false, true, true};
constexpr FullSweepOutcome kMoved{true, false, true, false, true, true};

// Plays the steps in no time at all, from second 1000 on.
class ScheduleTest : public testing::Test {
 protected:
  absl::Duration Due() const { return schedule_.Next().due; }
  // Goes to the next step, which must be of that kind; how long it took to get there.
  absl::Duration Step(SweepKind kind) {
    const Schedule::Step next = schedule_.Next();
    EXPECT_EQ(kind, next.kind);
    const absl::Duration waited = std::max(next.due, now_) - now_;
    now_ += waited;
    return waited;
  }
  absl::Duration Full(const FullSweepOutcome& outcome) {
    const absl::Duration waited = Step(SweepKind::kFull);
    schedule_.EndedFull(now_, now_, outcome);
    return waited;
  }
  // Until the next full sweep; light ones and counters see nothing. How long that took.
  absl::Duration ToFull(const FullSweepOutcome& outcome) {
    const absl::Duration began = now_;
    while (schedule_.Next().kind != SweepKind::kFull) Quiet();
    Full(outcome);
    return now_ - began;
  }
  void Quiet() {
    const SweepKind kind = schedule_.Next().kind;
    Step(kind);
    if (kind == SweepKind::kLight) schedule_.EndedLight(now_, now_, true, false);
    if (kind == SweepKind::kCounters) schedule_.EndedCounters(now_, now_, true);
  }
  void Light(bool has_changed) {
    while (schedule_.Next().kind == SweepKind::kCounters) Quiet();
    Step(SweepKind::kLight);
    schedule_.EndedLight(now_, now_, true, has_changed);
  }
  // Until all is quiet.
  void Calm() {
    Full(kChanged);
    ToFull(kSame);
    ToFull(kSame);
  }

  absl::Duration now_ = absl::Seconds(1000);
  Schedule schedule_{kPeriods, now_};
};

TEST_F(ScheduleTest, FullSweepsAtOnceAndAgainAfterFailures) {
  EXPECT_EQ(absl::ZeroDuration(), Full({}));
  for (const int seconds : {1, 2, 4, 8, 16, 32, 60, 60}) {
    EXPECT_EQ(absl::Seconds(seconds), Full({})) << seconds;  // nothing else before one went well
  }
  Full(kChanged);
  EXPECT_EQ(absl::Seconds(1), Full({}));  // and from the beginning
}

TEST_F(ScheduleTest, TablesAreReadUntilTheySettle) {
  Full(kChanged);
  EXPECT_EQ(absl::Seconds(1), ToFull(kUnsettled));
  EXPECT_EQ(absl::Seconds(2), ToFull(kUnsettled));
  EXPECT_EQ(absl::Seconds(4), ToFull(kMoved));
  EXPECT_EQ(absl::Seconds(5), ToFull(kUnsettled));
  EXPECT_EQ(absl::Seconds(5), ToFull(kSame));
  EXPECT_EQ(absl::Seconds(20), ToFull(kSame));  // the late look
  EXPECT_EQ(absl::Minutes(5), ToFull(kSame));
}

TEST_F(ScheduleTest, TablesThatWereKeptAreReadASecondLater) {
  Calm();
  Light(true);
  EXPECT_TRUE(schedule_.is_triggered());
  FullSweepOutcome kept = kSame;
  kept.are_tables_kept = true;
  EXPECT_EQ(absl::ZeroDuration(), Full(kept));
  EXPECT_FALSE(schedule_.is_triggered());
  EXPECT_EQ(absl::Seconds(1), ToFull(kSame));
}

TEST_F(ScheduleTest, RoutesThatNeverSettleAreReadForAMinute) {
  Full(kChanged);
  const absl::Duration changed = now_;
  while (ToFull(kUnsettled) < absl::Minutes(1)) {
  }
  EXPECT_GE(now_ - changed, absl::Minutes(5) + absl::Seconds(55));
  EXPECT_EQ(absl::Minutes(5), ToFull(kUnsettled));
  EXPECT_EQ(absl::Minutes(5), ToFull(kMoved));
  EXPECT_EQ(absl::Seconds(1), ToFull(kSame));
}

TEST_F(ScheduleTest, ASourceWithoutTablesSettlesAtOnce) {
  Full({true, true, true, true, true, true});
  EXPECT_EQ(absl::Minutes(5), ToFull(kSame));
}

TEST_F(ScheduleTest, BrokenTreesAndSilentNodesBringSweepsEarly) {
  Calm();
  constexpr FullSweepOutcome kSilent{true, false, false, true, false, true};
  constexpr FullSweepOutcome kBroken{true, false, false, true, true, false};
  EXPECT_EQ(absl::Minutes(5), ToFull(kSilent));
  for (const int seconds : {1, 2, 4, 8}) {
    EXPECT_EQ(absl::Seconds(seconds), ToFull(seconds % 4 == 0 ? kSilent : kBroken));
  }
  EXPECT_EQ(absl::Seconds(16), ToFull(kSame));
  EXPECT_EQ(absl::Minutes(5), ToFull(kBroken));
  EXPECT_EQ(absl::Seconds(1), ToFull(kSame));
  schedule_.WantFullSoon(now_);
  EXPECT_EQ(absl::Seconds(1), ToFull(kSame));
}

// Retries are far apart by then.
TEST_F(ScheduleTest, TheEndOfPatienceBringsASweep) {
  Calm();
  constexpr FullSweepOutcome kSilent{true, false, false, true, false, true};
  for (int i = 0; i < 8; ++i) ToFull(kSilent);
  FullSweepOutcome patient = kSilent;
  patient.patience = absl::Seconds(30);
  EXPECT_EQ(absl::Minutes(1), ToFull(patient));
  EXPECT_EQ(absl::Seconds(30), ToFull(kSilent));
  EXPECT_EQ(absl::Minutes(1), ToFull(kSilent));
}

TEST_F(ScheduleTest, LightSweepsAndCountersGoByPeriod) {
  Calm();
  const absl::Duration began = now_;
  std::map<SweepKind, int> steps;
  while (now_ < began + absl::Seconds(100)) {
    ++steps[schedule_.Next().kind];
    Quiet();
  }
  EXPECT_NEAR(20, steps[SweepKind::kLight], 1);
  EXPECT_NEAR(10, steps[SweepKind::kCounters], 1);
  EXPECT_EQ(0, steps[SweepKind::kFull]);
}

TEST_F(ScheduleTest, WhatALightSweepSeesIsReadAtOnce) {
  Calm();
  Light(true);
  EXPECT_EQ(SweepKind::kFull, schedule_.Next().kind);
  EXPECT_EQ(now_, Due());
}

// A light sweep each 100 ms, all of which see a change: the full ones behind keep their distance.
TEST_F(ScheduleTest, AFlappingLinkIsReadFiveSecondsApartInTheEnd) {
  Calm();
  schedule_.SetPeriods({absl::Minutes(5), absl::Milliseconds(100), absl::Seconds(10)}, now_);
  Light(true);
  Full(kSame);
  for (const int seconds : {1, 2, 4, 5, 5, 5}) {
    const absl::Duration last = now_;
    while (schedule_.Next().kind != SweepKind::kFull) {
      if (schedule_.Next().kind == SweepKind::kLight) {
        Light(true);
      } else {
        Quiet();
      }
    }
    Full(kSame);
    EXPECT_EQ(absl::Seconds(seconds), now_ - last);
  }
  while (now_ - schedule_.Next().due < absl::ZeroDuration() && now_ < absl::Seconds(1e6)) {
    Quiet();
    if (now_ > absl::Seconds(1000) + absl::Minutes(4)) break;
  }
  Light(true);
  EXPECT_EQ(now_, Due());  // it has been quiet
}

// Every full sweep sees another fabric, with and without light sweeps between that see it too.
TEST_F(ScheduleTest, AFlappingLinkIsReadFiveSecondsApartWhileRoutesSettle) {
  for (const absl::Duration light : {absl::InfiniteDuration(), absl::Milliseconds(100)}) {
    schedule_ = Schedule({absl::Minutes(5), light, absl::InfiniteDuration()}, now_);
    Full(kChanged);
    absl::Duration last = now_;
    std::vector<int64_t> pauses;
    while (pauses.size() < 8) {
      const Schedule::Step next = schedule_.Next();
      now_ = std::max(now_, next.due);
      if (next.kind == SweepKind::kLight) {
        schedule_.EndedLight(now_, now_, true, true);
        continue;
      }
      schedule_.EndedFull(now_, now_, kChanged);
      pauses.push_back(absl::ToInt64Seconds(now_ - last));
      last = now_;
    }
    for (size_t i = 4; i < pauses.size(); ++i) EXPECT_GE(pauses[i], 4) << light << " " << i;
    now_ += absl::Minutes(1);
  }
}

// Down for a part of each second, and down again whenever a full sweep looks: only light ones see
// the changes, and each time tables are kept at first.
TEST_F(ScheduleTest, AFlappingLinkThatFullSweepsSeeInOneStateIsReadFiveSecondsApart) {
  constexpr FullSweepOutcome kKept{true, false, false, false, true, true, true};
  Calm();
  schedule_.SetPeriods({absl::Minutes(5), absl::Milliseconds(100), absl::InfiniteDuration()}, now_);
  absl::Duration last = now_;
  std::vector<int64_t> pauses;
  while (pauses.size() < 8) {
    const Schedule::Step next = schedule_.Next();
    now_ = std::max(now_, next.due);
    if (next.kind == SweepKind::kLight) {
      schedule_.EndedLight(now_, now_, true, true);
      continue;
    }
    schedule_.EndedFull(now_, now_, schedule_.is_triggered() ? kKept : kSame);
    pauses.push_back(absl::ToInt64Seconds(now_ - last));
    last = now_;
  }
  for (size_t i = 5; i < pauses.size(); ++i) EXPECT_GE(pauses[i], 4) << i;
}

TEST_F(ScheduleTest, OtherPeriodsPutNothingOff) {
  Calm();
  schedule_.SwitchOff(SweepKind::kCounters);
  Light(false);
  for (int second = 1; second < 5; ++second) {
    now_ += absl::Seconds(1);
    schedule_.SetPeriods(kPeriods, now_);
  }
  EXPECT_EQ(SweepKind::kLight, schedule_.Next().kind);
  EXPECT_EQ(now_ + absl::Seconds(1), Due());
  EXPECT_EQ(absl::InfiniteDuration(), schedule_.periods().counters);  // the source has none
  schedule_.SetPeriods({absl::Minutes(5), absl::InfiniteDuration(), absl::Seconds(1)}, now_);
  EXPECT_EQ(SweepKind::kFull, schedule_.Next().kind);
}

TEST_F(ScheduleTest, FailuresOfLightSweepsAndCountersBackOff) {
  const absl::Duration never = absl::InfiniteDuration();
  schedule_ = Schedule({never, absl::Seconds(5), never}, now_);
  Calm();
  Step(SweepKind::kLight);
  for (const int seconds : {5, 5, 5, 8, 16, 32, 60, 60}) {
    schedule_.EndedLight(now_, now_, false, false);
    EXPECT_EQ(absl::Seconds(seconds), Step(SweepKind::kLight));
  }
  schedule_.EndedLight(now_, now_, true, false);
  schedule_ = Schedule({never, never, absl::Seconds(2)}, now_);
  Calm();
  Step(SweepKind::kCounters);
  for (const int seconds : {2, 2, 4, 8, 16, 32, 60, 60}) {
    schedule_.EndedCounters(now_, now_, false);
    EXPECT_EQ(absl::Seconds(seconds), Step(SweepKind::kCounters));
  }
  schedule_.EndedCounters(now_, now_, true);
  EXPECT_EQ(absl::Seconds(2), Step(SweepKind::kCounters));
}

// As long as the others fail, full sweeps come between them, ever more seldom.
TEST_F(ScheduleTest, WhatOnlyAFullSweepCanMendBringsOne) {
  const absl::Duration never = absl::InfiniteDuration();
  schedule_ = Schedule({absl::Minutes(5), absl::Seconds(1), never}, now_);
  Calm();
  for (const int seconds : {1, 2, 4, 8, 16, 32, 60}) {
    Step(SweepKind::kLight);
    schedule_.NeedFull(now_);
    schedule_.EndedLight(now_, now_, false, false);
    const absl::Duration failed = now_;
    while (schedule_.Next().kind == SweepKind::kLight) {
      Step(SweepKind::kLight);
      schedule_.EndedLight(now_, now_, false, false);
    }
    Full(kSame);
    EXPECT_EQ(absl::Seconds(seconds), now_ - failed);
    now_ += absl::Minutes(2);
  }
  Light(false);  // it goes well again
  const absl::Duration now = now_;
  schedule_.NeedFull(now);
  ToFull(kSame);
  EXPECT_EQ(absl::Seconds(1), now_ - now);
}

TEST_F(ScheduleTest, WhatASourceDoesNotHaveIsNotAskedAgain) {
  Calm();
  schedule_.SwitchOff(SweepKind::kCounters);
  schedule_.SwitchOff(SweepKind::kLight);
  EXPECT_EQ(SweepKind::kFull, schedule_.Next().kind);
  EXPECT_EQ(absl::InfiniteDuration(), schedule_.periods().light);
  EXPECT_EQ(absl::Minutes(5), Full(kSame));
}

TEST_F(ScheduleTest, NoPeriodIsNeverButForFailures) {
  Schedule schedule({}, absl::Seconds(7));
  schedule.EndedFull(absl::Seconds(8), absl::Seconds(8), {});
  EXPECT_EQ(absl::Seconds(9), schedule.Next().due);
  schedule.EndedFull(absl::Seconds(9), absl::Seconds(9), {true, true, true, true, true, true});
  EXPECT_EQ(absl::InfiniteDuration(), schedule.Next().due);
  schedule.EndedLight(absl::Seconds(9), absl::Seconds(9), true, true);
  EXPECT_EQ(absl::InfiniteDuration(), schedule.Next().due);
}

// Whatever the steps take and find, none is due for long while others run.
TEST_F(ScheduleTest, NothingStarves) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](uint64_t bound) { return random() % bound; };
  for (int run = 0; run < 200; ++run) {
    now_ = absl::Seconds(1000);
    schedule_ = Schedule(kPeriods, now_);
    for (int step = 0; step < 300; ++step) {
      const Schedule::Step next = schedule_.Next();
      ASSERT_NE(absl::InfiniteDuration(), next.due);
      now_ = std::max(now_, next.due);
      // Each step takes up to 3 s, so the two others may come before it.
      ASSERT_LE(now_ - next.due, absl::Seconds(9)) << "run " << run << " step " << step;
      const absl::Duration began = now_;
      now_ += absl::Milliseconds(1 + below(3000));
      if (next.kind == SweepKind::kFull) {
        schedule_.EndedFull(now_, now_,
                            {below(8) != 0, below(2) == 0, below(2) == 0, below(2) == 0,
                             below(4) != 0, below(4) != 0});
      } else if (next.kind == SweepKind::kLight) {
        schedule_.EndedLight(began, now_, below(8) != 0, below(2) == 0);
      } else {
        schedule_.EndedCounters(began, now_, below(8) != 0);
      }
    }
  }
}

}  // namespace
}  // namespace coppice::schedule_test
