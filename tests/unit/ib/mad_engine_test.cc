#include "daemon/ib/mad_engine.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/support/tier.h"
#include "tests/unit/ib/scripted_subnet.h"

namespace coppice::mad_engine_test {
namespace {

using Kind = MadOutcome::Kind;

//   host 0 --- switch 1 --- host 2
class MadEngineTest : public testing::Test {
 protected:
  MadEngineTest() {
    subnet_.Add(1, 1, "n0", 1);
    subnet_.Add(2, 8, "S", 2);
    subnet_.Add(1, 1, "n1", 3);
    subnet_.Cable(0, 1, 1, 1);
    subnet_.Cable(1, 2, 2, 1);
  }

  static MadRequest To(std::initializer_list<int> hops, uint32_t subject,
                       MadAttribute attribute = MadAttribute::kNodeInfo) {
    MadRequest request;
    for (int hop : hops) request.route = request.route.Then(PortNum(static_cast<uint8_t>(hop)));
    request.attribute = attribute;
    request.subject = subject;
    return request;
  }

  absl::Status Run(MadEngine& engine) {
    return engine.Run([this](const MadRequest& request, const MadOutcome& outcome) {
      EXPECT_TRUE(outcomes_.emplace(request.subject, outcome.kind).second) << "completed twice";
    });
  }

  ScriptedSubnet subnet_;
  std::map<uint32_t, Kind> outcomes_;  // by subject
};

TEST_F(MadEngineTest, CompletesEachRequestOnceWhateverTheOrder) {
  subnet_.latency = absl::Milliseconds(1);
  subnet_.reorder = true;
  MadEngine engine(subnet_, subnet_, {.window = 16});
  for (uint32_t i = 0; i < 500; ++i) engine.Submit(i % 2 ? To({1}, i) : To({1, 2}, i));
  ASSERT_TRUE(Run(engine).ok());
  EXPECT_EQ(outcomes_.size(), 500u);
  for (const auto& [subject, kind] : outcomes_) EXPECT_EQ(kind, Kind::kAnswered);
  EXPECT_EQ(engine.counts().sent, 500u);
  EXPECT_EQ(engine.counts().resent, 0u);
  EXPECT_LE(subnet_.most_under_way, 16u);
}

TEST_F(MadEngineTest, DuplicatesAndLateAnswersAndStrangersAreIgnored) {
  subnet_.latency = absl::Milliseconds(120);  // later than the first timeout would like
  subnet_.on_reply = [](int, int, Mad&) { return 3; };
  Mad stranger{};
  for (int i = 0; i < 20; ++i) {
    stranger[15] = static_cast<uint8_t>(200 + i);
    stranger[3] = static_cast<uint8_t>(i);
    subnet_.Inject(stranger, absl::Milliseconds(i));
  }
  MadEngine engine(subnet_, subnet_, {.first_timeout = absl::Milliseconds(50)});
  for (int round = 0; round < 3; ++round) {
    outcomes_.clear();
    for (uint32_t i = 0; i < 100; ++i) engine.Submit(To({1, 2}, i));
    ASSERT_TRUE(Run(engine).ok());
    ASSERT_EQ(outcomes_.size(), 100u);
    for (const auto& [subject, kind] : outcomes_) EXPECT_EQ(kind, Kind::kAnswered);
  }
}

TEST_F(MadEngineTest, AnAnswerToAnotherQuestionDoesNotCount) {
  subnet_.on_reply = [](int node, int, Mad& reply) {
    if (node == 2) reply[17] ^= 1;  // attribute
    return 1;
  };
  MadEngine engine(subnet_, subnet_);
  engine.Submit(To({1, 2}, 0));
  engine.Submit(To({1}, 1));
  ASSERT_TRUE(Run(engine).ok());
  EXPECT_EQ(outcomes_[0], Kind::kUnanswered);
  EXPECT_EQ(outcomes_[1], Kind::kAnswered);
}

TEST_F(MadEngineTest, LossIsMadeGoodAndCounted) {
  std::mt19937_64 random(TestSeed());
  subnet_.on_reply = [&](int, int, Mad&) { return random() % 4 == 0 ? 0 : 1; };
  for (const bool gives_back : {false, true}) {
    subnet_.gives_back = gives_back;
    outcomes_.clear();
    MadEngine engine(subnet_, subnet_, {.max_attempts = 12});
    for (uint32_t i = 0; i < 300; ++i) engine.Submit(To({1}, i));
    ASSERT_TRUE(Run(engine).ok());
    ASSERT_EQ(outcomes_.size(), 300u);
    for (const auto& [subject, kind] : outcomes_) EXPECT_EQ(kind, Kind::kAnswered);
    EXPECT_GT(engine.counts().resent, 20u);
    EXPECT_EQ(engine.counts().sent, 300 + engine.counts().resent);
    EXPECT_EQ(engine.counts().timed_out, engine.counts().resent);
  }
}

TEST_F(MadEngineTest, ASilentNodeIsUnansweredAfterItsAttempts) {
  for (const bool gives_back : {false, true}) {
    subnet_.gives_back = gives_back;
    outcomes_.clear();
    MadEngine engine(subnet_, subnet_, {.max_attempts = 3});
    for (uint32_t i = 0; i < 10; ++i) engine.Submit(To({1, 7}, i));
    ASSERT_TRUE(Run(engine).ok());
    EXPECT_EQ(outcomes_.size(), 10u);
    for (const auto& [subject, kind] : outcomes_) EXPECT_EQ(kind, Kind::kUnanswered);
    EXPECT_EQ(engine.counts().sent, 31u);  // and one question to the local port
    EXPECT_EQ(engine.counts().timed_out, 30u);
  }
}

// What comes late for an abandoned run is nobody's in the next one.
TEST_F(MadEngineTest, ARunThatIsAbandonedEndsAtOnceAndTheNextIsWhole) {
  subnet_.latency = absl::Milliseconds(1);
  subnet_.reorder = true;
  MadEngine engine(subnet_, subnet_, {.window = 16});
  for (int round = 0; round < 20; ++round) {
    int heard = 0;
    for (uint32_t i = 0; i < 100; ++i) engine.Submit(i == 0 ? To({1, 5}, i) : To({1, 2}, i));
    const absl::Duration start = subnet_.Monotonic();
    ASSERT_TRUE(engine
                    .Run([&](const MadRequest&, const MadOutcome&) {
                      if (++heard == 20) engine.Abandon();
                    })
                    .ok());
    EXPECT_EQ(heard, 20);
    EXPECT_LT(subnet_.Monotonic() - start, engine.Patience(1));
    outcomes_.clear();
    for (uint32_t i = 0; i < 50; ++i) engine.Submit(To({1}, 1000 + i));
    ASSERT_TRUE(Run(engine).ok());
    EXPECT_EQ(outcomes_.size(), 50u);
  }
}

TEST_F(MadEngineTest, ABusyNodeIsAskedAgainAndARefusalIsFinal) {
  int busy = 2;
  subnet_.on_reply = [&](int, int, Mad& reply) {
    if (busy-- > 0) reply[5] |= 1;
    return 1;
  };
  MadEngine engine(subnet_, subnet_);
  engine.Submit(To({1}, 0));
  ASSERT_TRUE(Run(engine).ok());
  engine.Submit(To({1, 2}, 1, MadAttribute::kSwitchInfo));
  ASSERT_TRUE(Run(engine).ok());
  EXPECT_EQ(outcomes_[0], Kind::kAnswered);
  EXPECT_EQ(outcomes_[1], Kind::kRefused);
  EXPECT_EQ(engine.counts().resent, 2u);
}

TEST_F(MadEngineTest, ASilentLocalPortFailsTheRunAndSendsStayBounded) {
  bool dead = true;
  subnet_.on_reply = [&](int, int, Mad&) { return dead ? 0 : 1; };
  MadEngine engine(subnet_, subnet_);
  for (int round = 0; round < 20; ++round) {
    for (uint32_t i = 0; i < 1000; ++i) engine.Submit(To({1}, i));
    EXPECT_TRUE(absl::IsUnavailable(Run(engine)));
  }
  EXPECT_TRUE(outcomes_.empty());
  EXPECT_LE(subnet_.sends, 128u + 2 * 20);  // a sign of life is asked for even so
  dead = false;
  for (uint32_t i = 0; i < 1000; ++i) engine.Submit(To({1}, i));
  ASSERT_TRUE(Run(engine).ok());
  EXPECT_EQ(outcomes_.size(), 1000u);
}

TEST_F(MadEngineTest, AFullQueueIsTriedAgainAndALostPortIsNot) {
  int refused = 5;
  subnet_.on_send = [&] {
    return refused-- > 0 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
  };
  MadEngine engine(subnet_, subnet_);
  for (uint32_t i = 0; i < 20; ++i) engine.Submit(To({1}, i));
  ASSERT_TRUE(Run(engine).ok());
  EXPECT_EQ(outcomes_.size(), 20u);
  subnet_.on_send = [] { return absl::UnavailableError("gone"); };
  engine.Submit(To({1}, 99));
  EXPECT_TRUE(absl::IsUnavailable(Run(engine)));
  EXPECT_EQ(outcomes_.count(99), 0u);
}

}  // namespace
}  // namespace coppice::mad_engine_test
