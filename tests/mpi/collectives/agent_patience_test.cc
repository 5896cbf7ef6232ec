// How long a program waits for an agent that is away, slow, or back and away again.
#include "agents/mpi/core/agent_patience.h"

#include <gtest/gtest.h>

namespace coppice::mpi {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr AgentPatience::Duration kQuestion = seconds(2);
constexpr AgentPatience::Duration kBudget = AgentPatience::kQuestions * kQuestion;

// A program that asks whenever it may, for `time`; what it waited all in all. `wait`: of one
// question.
template <class IsAnswered>
AgentPatience::Duration Waited(AgentPatience::Duration time, AgentPatience::Duration wait,
                               const IsAnswered& is_answered) {
  AgentPatience::Time now{};
  AgentPatience patience(kQuestion, now);
  AgentPatience::Duration waited{};
  for (const AgentPatience::Time end = now + time; now < end; now += milliseconds(10)) {
    if (!patience.MayAsk(now)) continue;
    now += wait;
    waited += wait;
    patience.Asked(is_answered(), wait, now);
  }
  return waited;
}

TEST(AgentPatience, AQuickAgentIsAskedAlways) {
  const AgentPatience::Duration time = hours(1), wait = std::chrono::microseconds(250);
  // Once in 10.25 ms.
  EXPECT_GT(Waited(time, wait, [] { return true; }), time / 50);
}

TEST(AgentPatience, ASilentAgentIsAskedLessAndLess) {
  const auto never = [] { return false; };
  EXPECT_EQ(Waited(seconds(9), kQuestion, never), kQuestion);
  // After 0, 12, 34, 76, 158, 320, 642, 1244, 1846, 2448 and 3050 seconds.
  EXPECT_EQ(Waited(hours(1), kQuestion, never), 11 * kQuestion);
}

TEST(AgentPatience, ASlowAgentCostsATwentiethOfTheTime) {
  for (const AgentPatience::Duration time : {seconds(20), seconds(600), seconds(36000)}) {
    const AgentPatience::Duration waited =
        Waited(time, kQuestion - milliseconds(1), [] { return true; });
    EXPECT_LE(waited, kBudget + time / AgentPatience::kShare);
    EXPECT_GT(waited, kBudget / 2);
  }
}

TEST(AgentPatience, OneThatComesAndGoesCostsNoMore) {
  int turn = 0;
  const AgentPatience::Duration time = hours(10);
  EXPECT_LE(Waited(time, kQuestion, [&] { return ++turn % 2 == 0; }),
            2 * (kBudget + time / AgentPatience::kShare));
}

TEST(AgentPatience, AnswersLeaveThePatienceForSilence) {
  AgentPatience::Time now{};
  AgentPatience patience(kQuestion, now);
  patience.Asked(true, kBudget - kQuestion, now);  // a thousand quick ones
  for (int silent = 1; silent < AgentPatience::kQuestions; ++silent) {
    EXPECT_TRUE(patience.MayAsk(now)) << silent;
    patience.Asked(false, kQuestion, now);
    patience.Asked(true, {}, now);  // whose pause is the first again
    now += AgentPatience::kAwhile;
  }
}

TEST(AgentPatience, AnAnswerEndsThePauses) {
  AgentPatience::Time now{};
  AgentPatience patience(kQuestion, now);
  patience.Asked(false, seconds(0), now);
  EXPECT_FALSE(patience.MayAsk(now + seconds(9)));
  now += seconds(10);
  EXPECT_TRUE(patience.MayAsk(now));
  patience.Asked(false, seconds(0), now);
  EXPECT_FALSE(patience.MayAsk(now + seconds(19)));
  now += seconds(20);
  patience.Asked(true, seconds(0), now);
  patience.Asked(false, seconds(0), now);
  EXPECT_TRUE(patience.MayAsk(now + seconds(10)));
}

TEST(AgentPatience, ItKnowsAnAgentThatIsAwayFromOneThatWasWaitedForEnough) {
  AgentPatience::Time now{};
  AgentPatience patience(kQuestion, now);
  EXPECT_TRUE(patience.MayAsk(now));
  EXPECT_FALSE(patience.IsLeftAlone(now));
  patience.Asked(true, kBudget, now);
  EXPECT_FALSE(patience.MayAsk(now));
  EXPECT_FALSE(patience.IsLeftAlone(now));
  patience.Asked(false, seconds(0), now);
  EXPECT_TRUE(patience.IsLeftAlone(now));
  EXPECT_FALSE(patience.IsLeftAlone(now + AgentPatience::kAwhile));
}

TEST(AgentPatience, WhoWaitsForOthersSpendsItsOwn) {
  AgentPatience::Time now{};
  AgentPatience patience(kQuestion, now);
  patience.WaitedForOthers(kQuestion, now);
  EXPECT_FALSE(patience.MayAsk(now + seconds(9)));
  now += AgentPatience::kAwhile;
  EXPECT_TRUE(patience.MayAsk(now));
  patience.WaitedForOthers(kBudget, now);
  // There is a debt of three quarters of a question now.
  EXPECT_FALSE(patience.MayAsk(now + AgentPatience::kShare * kQuestion));
  EXPECT_TRUE(patience.MayAsk(now + AgentPatience::kShare * 2 * kQuestion));
}

}  // namespace
}  // namespace coppice::mpi
