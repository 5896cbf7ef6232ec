// The choice between ways, on members that only have times.
#include "agents/mpi/tree/trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <vector>

namespace coppice::mpi {
namespace {

constexpr double kBarrier = 0.7;
// Calls of a trial of two ways that ends with another one.
constexpr int kTrialOfTwo = 2 * Trial::kMost + 2 * Trial::kInPlace;

const std::vector<Way> kTwo = {Way::kTree, Way::kNative};
const std::vector<Way> kFour = {Way::kTree, Way::kChain, Way::kExchange, Way::kNative};

// Members of one communicator, which make the same calls; `time(member, way)` in seconds.
class Members {
 public:
  explicit Members(size_t count, const std::vector<Way>& ways = kTwo,
                   std::optional<Way> known = std::nullopt)
      : trials_(count, Trial(ways, known)) {}

  template <class Time>
  Way Call(const Time& time) {
    if (trials_[0].IsDue()) Agree();
    const Way way = trials_[0].Next();
    double longest = 0;
    for (size_t member = 0; member < trials_.size(); ++member) {
      Trial& trial = trials_[member];
      if (member > 0) {
        EXPECT_EQ(trial.Next(), way);
      }
      has_barrier_ = trials_[0].WantsBarrier();
      const double took = time(member, way);
      longest = std::max(longest, took);
      if (!trial.IsMeasured()) continue;
      if (has_barrier_) trial.Waited(Trial::Seconds(kBarrier));
      trial.Took(Trial::Seconds(took));
    }
    spent_ += longest + (has_barrier_ ? kBarrier : 0);
    return way;
  }
  int agreed() const { return agreed_; }
  // Whether members hold one before the call that is asked for its time.
  bool has_barrier() const { return has_barrier_; }
  const std::array<double, kWays>& last_times() const { return trials_[0].last_times(); }
  double spent() const { return spent_; }

 private:
  void Agree() {
    Trial::Measured longest;
    for (const Trial& trial : trials_) {
      EXPECT_TRUE(trial.IsDue());
      const Trial::Measured& own = trial.measured();
      for (size_t way = 0; way < kWays; ++way) {
        for (int call = 0; call < Trial::kMost; ++call) {
          longest.times[way][call] = std::max(longest.times[way][call], own.times[way][call]);
        }
      }
      for (size_t which = 0; which < 2; ++which) {
        for (int call = 0; call < Trial::kInPlace; ++call) {
          longest.in_place[which][call] =
              std::max(longest.in_place[which][call], own.in_place[which][call]);
        }
      }
      longest.waited = std::max(longest.waited, own.waited);
    }
    for (Trial& trial : trials_) trial.Decide(longest);
    spent_ += kBarrier;
    ++agreed_;
  }

  std::vector<Trial> trials_;
  int agreed_ = 0;
  bool has_barrier_ = false;
  double spent_ = 0;
};

auto Fixed(double tree, double native) {
  return [=](size_t /*member*/, Way way) { return way == Way::kTree ? tree : native; };
}

struct Times {
  double tree, native;
};

TEST(Trial, TakesTheSoonerWay) {
  for (const auto [tree, native] : {Times{1, 3}, Times{3, 1}, Times{1, 1.2}, Times{1.2, 1}}) {
    Members members(3);
    for (int call = 0; call < kTrialOfTwo; ++call) members.Call(Fixed(tree, native));
    for (int call = 0; call < 100; ++call) {
      EXPECT_EQ(members.Call(Fixed(tree, native)), tree < native ? Way::kTree : Way::kNative);
    }
  }
}

TEST(Trial, IsShortWhereOneWayIsMuchSlower) {
  Members members(2);
  int along = 0;
  for (int call = 0; call < 100; ++call) along += members.Call(Fixed(9, 1)) == Way::kTree;
  EXPECT_EQ(along, Trial::kFirst);
  EXPECT_EQ(members.agreed(), 1);
}

TEST(Trial, StaysNativeUnlessATreeIsClearlySooner) {
  Members members(1);
  for (int call = 0; call < kTrialOfTwo; ++call) members.Call(Fixed(0.95, 1));
  EXPECT_EQ(members.Call(Fixed(0.95, 1)), Way::kNative);
}

TEST(Trial, LeavesATreeForTheNativeWaySooner) {
  Members members(1);
  for (int call = 0; call < kTrialOfTwo; ++call) members.Call(Fixed(0.9, 1));
  EXPECT_EQ(members.Call(Fixed(0.9, 1)), Way::kTree);
  for (int calls = 0; members.agreed() < 6; ++calls) {
    members.Call(Fixed(1.05, 1));
    ASSERT_LT(calls, 50'000);
  }
  EXPECT_EQ(members.Call(Fixed(1.05, 1)), Way::kNative);
}

TEST(Trial, BeginsWithWhatIsKnownAndFindsOutWhetherThatIsStillSo) {
  Members members(2, kTwo, Way::kTree);
  for (uint64_t call = 0; call < Trial::kKnownPause; ++call) {
    EXPECT_EQ(members.Call(Fixed(0.5, 1)), Way::kTree);
  }
  EXPECT_EQ(members.agreed(), 0);
  EXPECT_EQ(members.last_times(), (std::array<double, kWays>{}));
  for (int calls = 0; members.agreed() < 2; ++calls) {
    members.Call(Fixed(8, 1));
    ASSERT_LT(calls, 100);
  }
  EXPECT_EQ(members.Call(Fixed(8, 1)), Way::kNative);
  EXPECT_EQ(members.last_times(), (std::array<double, kWays>{1, 8}));
}

TEST(Trial, TheSoonestOfKnownTimesIsClearlySooner) {
  const auto soonest = [](const std::vector<Way>& ways, std::array<float, kWays> us) {
    KnownTimes known;
    known.us = us;
    return Trial::SoonestOf(ways, known);
  };
  EXPECT_EQ(soonest(kTwo, {1, 0.95F}), Way::kNative);
  EXPECT_EQ(soonest(kTwo, {1, 0.9F}), Way::kTree);
  EXPECT_EQ(soonest(kTwo, {1, 0.9F, 0.5F, 0, 0.4F, 0.1F}), Way::kTree);  // of those that are there
  EXPECT_EQ(soonest(kFour, {1, 0.9F, 0.5F, 0, 0.4F, 0.1F}), Way::kExchange);
  EXPECT_EQ(soonest(kFour, {1, 0.9F, 0.5F, 0.1F, 0, 0}), std::nullopt);
  EXPECT_EQ(soonest(kTwo, {0, 0.9F}), std::nullopt);
}

// Behind a barrier the tree is the soonest, and in the program it is not.
TEST(Trial, LeavesAWayOnlyForOneThatIsNoSlowerInPlace) {
  for (const auto [tree, kept] : {Times{1.01, 1}, Times{0.99, 0}}) {
    Members members(2);
    const auto time = [&, in_place = tree](size_t /*member*/, Way way) {
      return way == Way::kNative ? 1.0 : members.has_barrier() ? 0.5 : in_place;
    };
    for (int call = 0; call < kTrialOfTwo; ++call) members.Call(time);
    EXPECT_EQ(members.Call(time), kept == 1 ? Way::kNative : Way::kTree);
    EXPECT_EQ(members.agreed(), 3);
    // So shall the next run of the application have it.
    KnownTimes known;
    for (size_t way = 0; way < kWays; ++way) {
      known.us[way] = static_cast<float>(members.last_times()[way]);
    }
    EXPECT_EQ(Trial::SoonestOf(kTwo, known), kept == 1 ? Way::kNative : Way::kTree);
  }
}

TEST(Trial, GoesByWhomItTakesLongest) {
  const auto time = [](size_t member, Way way) {
    return way == Way::kNative ? 2.0 : member == 2 ? 5.0 : 1.0;
  };
  Members members(3);
  for (int call = 0; call < kTrialOfTwo; ++call) members.Call(time);
  EXPECT_EQ(members.Call(time), Way::kNative);
}

// Times of each way, in the order of Way.
auto OfEach(const std::array<double, kWays>& times) {
  return [=](size_t /*member*/, Way way) { return times[static_cast<size_t>(way)]; };
}

TEST(Trial, TakesTheSoonestOfManyWays) {
  std::array<double, kWays> times = {1.0, 1.1, 1.2, 1e-9, 1.3};
  std::vector<double> present = {1.0, 1.1, 1.2, 1.3};
  do {
    for (size_t i = 0; i < kFour.size(); ++i) times[static_cast<size_t>(kFour[i])] = present[i];
    Members members(2, kFour);
    for (int call = 0; call < 32 + 2 * Trial::kInPlace; ++call) members.Call(OfEach(times));
    const auto least = std::min_element(present.begin(), present.end());
    for (int call = 0; call < 100; ++call) {
      EXPECT_EQ(members.Call(OfEach(times)), kFour[least - present.begin()]);
    }
    EXPECT_EQ(members.agreed(), kFour[least - present.begin()] == Way::kNative ? 2 : 3);
  } while (std::next_permutation(present.begin(), present.end()));
}

TEST(Trial, TriesEachWaySomeTimesAndTheTwoSoonestMoreOften) {
  const auto times = OfEach({3, 1, 2, 0, 50});
  Members members(2, kFour);
  std::array<int, kWays> gone = {};
  for (int call = 0; call < 32; ++call) ++gone[static_cast<size_t>(members.Call(times))];
  EXPECT_EQ(gone, (std::array<int, kWays>{4, 12, 12, 0, 4}));
}

TEST(Trial, CallsThatAreHeldUpDoNotMatter) {
  std::mt19937 random(1);
  int wrong = 0;
  for (int run = 0; run < 1000; ++run) {
    Members members(4);
    // One call in five or so is held up somewhere.
    const auto time = [&](size_t /*member*/, Way way) {
      return (way == Way::kTree ? 1.0 : 2.0) + (random() % 20 == 0 ? 50.0 : 0.0);
    };
    for (int call = 0; call < kTrialOfTwo; ++call) members.Call(time);
    wrong += members.Call(time) == Way::kNative;
  }
  EXPECT_LT(wrong, 100);
}

TEST(Trial, WhatComesAgainAfterSomeCallsCountsForBothWays) {
  for (const int period : {2, 3, 4, 6, 8}) {
    for (int phase = 0; phase < period; ++phase) {
      Members members(1);
      int call = phase;
      // Every so many calls one takes three times as long, whichever way it goes.
      const auto time = [&](size_t /*member*/, Way way) {
        return (way == Way::kTree ? 1.2 : 1.0) * (call % period == 0 ? 3 : 1);
      };
      for (int n = 0; n < kTrialOfTwo; ++n, ++call) members.Call(time);
      EXPECT_EQ(members.Call(time), Way::kNative) << period << " " << phase;
    }
  }
}

TEST(Trial, CostsLittleHoweverSlowAWayIs) {
  for (const double slower : {1.02, 1.4, 2.0, 10.0, 1000.0, 100'000.0}) {
    Members members(2);
    constexpr int kCalls = 2'000'000;
    for (int call = 0; call < kCalls; ++call) members.Call(Fixed(slower, 1));
    // The last trial is paid for by the calls after it.
    const double one_trial = 2 * Trial::kMost * (1 + kBarrier) + Trial::kMost * slower;
    EXPECT_LT(members.spent(), kCalls * (1 + Trial::kShare) + one_trial) << slower;
  }
}

TEST(Trial, NoticesThatTimesHaveChanged) {
  Members members(2);
  for (int call = 0; call < 1000; ++call) members.Call(Fixed(1, 2));
  EXPECT_EQ(members.Call(Fixed(1, 2)), Way::kTree);
  int calls = 0;
  while (members.agreed() < 6) {
    members.Call(Fixed(3, 2));
    ASSERT_LT(++calls, 50'000);
  }
  for (int call = 0; call < 200; ++call) EXPECT_EQ(members.Call(Fixed(3, 2)), Way::kNative);
}

TEST(Trial, IsHeldAnewForAnotherTree) {
  Trial trial(kTwo);
  const auto along = [&trial](double tree) {
    for (int call = 0;; ++call) {
      if (trial.IsDue()) trial.Decide(trial.measured());
      const Way way = trial.Next();
      if (!trial.IsMeasured()) return way;
      EXPECT_EQ(trial.TriesAgain(), call == 0 && tree > 9);
      trial.Took(Trial::Seconds(way == Way::kTree ? tree : 5.0));
    }
  };
  EXPECT_EQ(along(1), Way::kTree);
  trial.Restart();
  EXPECT_EQ(along(50), Way::kNative);
}

}  // namespace
}  // namespace coppice::mpi
