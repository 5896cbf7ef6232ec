// The choice between a tree and the native way, on members that only have times.
#include "agents/mpi/tree/trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace coppice::mpi {
namespace {

using Times = std::array<double, 2>;  // [way]

// Members of one communicator, which make the same calls; `time(member, way)` in seconds.
class Members {
 public:
  explicit Members(size_t count) : trials_(count) {}

  template <class Time>
  Way Call(const Time& time) {
    if (trials_[0].IsDue()) {
      Times longest = {};
      for (const Trial& trial : trials_) {
        EXPECT_TRUE(trial.IsDue());
        const Times own = trial.UsualTimes();
        for (size_t way = 0; way < 2; ++way) longest[way] = std::max(longest[way], own[way]);
      }
      for (Trial& trial : trials_) trial.Decide(longest);
      ++agreed_;
    }
    const Way way = trials_[0].Next();
    spent_ += time(0, way);
    for (size_t member = 0; member < trials_.size(); ++member) {
      Trial& trial = trials_[member];
      if (member > 0) {
        EXPECT_EQ(trial.Next(), way);
      }
      if (trial.IsMeasured()) trial.Took(Trial::Seconds(time(member, way)));
    }
    return way;
  }
  int agreed() const { return agreed_; }
  double spent() const { return spent_; }

 private:
  std::vector<Trial> trials_;
  int agreed_ = 0;
  double spent_ = 0;
};

auto Fixed(double tree, double native) {
  return [=](size_t /*member*/, Way way) { return way == Way::kTree ? tree : native; };
}

TEST(Trial, TakesTheSoonerWay) {
  for (const auto [tree, native] : {Times{1, 3}, Times{3, 1}, Times{1, 1.2}, Times{1.2, 1}}) {
    Members members(3);
    for (int call = 0; call < 2 * Trial::kMost; ++call) members.Call(Fixed(tree, native));
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
  for (int call = 0; call < 2 * Trial::kMost; ++call) members.Call(Fixed(0.99, 1));
  EXPECT_EQ(members.Call(Fixed(0.99, 1)), Way::kNative);
}

TEST(Trial, GoesByWhoeverTakesLongest) {
  const auto time = [](size_t member, Way way) {
    return way == Way::kNative ? 2.0 : member == 2 ? 5.0 : 1.0;
  };
  Members members(3);
  for (int call = 0; call < 2 * Trial::kMost; ++call) members.Call(time);
  EXPECT_EQ(members.Call(time), Way::kNative);
}

TEST(Trial, FewLateCallsDoNotMatter) {
  std::mt19937 random(1);
  int wrong = 0;
  for (int run = 0; run < 1000; ++run) {
    Members members(4);
    // A member is late for one call in eight.
    const auto time = [&](size_t /*member*/, Way way) {
      return (way == Way::kTree ? 1.0 : 2.0) + (random() % 8 == 0 ? 50.0 : 0.0);
    };
    for (int call = 0; call < 2 * Trial::kMost; ++call) members.Call(time);
    wrong += members.Call(time) == Way::kNative;
  }
  EXPECT_LT(wrong, 50);
}

TEST(Trial, CostsLittleHoweverSlowAWayIs) {
  for (const double slower : {1.02, 1.4, 2.0, 10.0, 1000.0}) {
    Members members(2);
    constexpr int kCalls = 2'000'000;
    for (int call = 0; call < kCalls; ++call) members.Call(Fixed(slower, 1));
    // The first trial is paid for by the calls after it.
    EXPECT_LT(members.spent(), kCalls * (1 + 2 * Trial::kShare) + Trial::kMost * slower) << slower;
  }
}

TEST(Trial, NoticesThatTimesHaveChanged) {
  Members members(2);
  for (int call = 0; call < 1000; ++call) members.Call(Fixed(1, 2));
  EXPECT_EQ(members.Call(Fixed(1, 2)), Way::kTree);
  int calls = 0;
  while (members.Call(Fixed(3, 2)) == Way::kTree || calls % 100 != 99) {
    ASSERT_LT(++calls, 20'000);
  }
  for (int call = 0; call < 200; ++call) EXPECT_EQ(members.Call(Fixed(3, 2)), Way::kNative);
}

}  // namespace
}  // namespace coppice::mpi
