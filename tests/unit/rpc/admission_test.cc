// Places, turns and shares of callers, by calls that only note what becomes of them.
#include "daemon/rpc/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "daemon/rpc/unix_connections.h"
#include "tests/unit/rpc/loopback.h"

namespace coppice::admission_test {
namespace {

using Verdict = Admission::Verdict;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NotedCall final : public AdmittedCall {
 public:
  NotedCall(std::string name, std::vector<std::string>* started)
      : name_(std::move(name)), started_(started) {}
  bool is_aborted = false;

 private:
  void Start() override { started_->push_back(name_); }
  void Abort() override { is_aborted = true; }

  const std::string name_;
  std::vector<std::string>* const started_;
};

class AdmissionTest : public ::testing::Test {
 protected:
  static AdmissionBounds Few() {
    AdmissionBounds bounds;
    bounds.caller = {.calls = 2,
                     .waiting = 3,
                     .streams = 2,
                     .calls_per_second = 1000,
                     .request_memory = 1 << 20,
                     .answer_memory = 1 << 20};
    bounds.request_memory = bounds.answer_memory = 3 << 20;
    return bounds;
  }

  std::shared_ptr<NotedCall> Make(const std::string& name) {
    return std::make_shared<NotedCall>(name, &started_);
  }
  absl::StatusOr<Verdict> Arrive(const std::shared_ptr<NotedCall>& call, const std::string& name,
                                 Admission::Kind kind = Admission::Kind::kCall) {
    return admission_.Arrive(call, {name, false}, kind);
  }

  ManualClock clock_;
  Admission admission_{Few(), &clock_};
  std::vector<std::string> started_;
};

TEST_F(AdmissionTest, ACallerWaitsForItselfAndNotForOthers) {
  const auto a1 = Make("a1"), a2 = Make("a2"), a3 = Make("a3"), b1 = Make("b1");
  EXPECT_EQ(*Arrive(a1, "a"), Verdict::kStart);
  EXPECT_EQ(*Arrive(a2, "a"), Verdict::kStart);
  EXPECT_EQ(*Arrive(a3, "a"), Verdict::kWait);
  EXPECT_EQ(*Arrive(b1, "b"), Verdict::kStart);
  admission_.Read(*a1);
  EXPECT_THAT(started_, ElementsAre());
  admission_.Leave(*a1);
  EXPECT_THAT(started_, ElementsAre("a3"));
  for (const auto& call : {a2, a3, b1}) admission_.Leave(*call);
  EXPECT_EQ(admission_.numbers().calls, 0u);
  EXPECT_EQ(admission_.numbers().waiting, 0u);
}

TEST_F(AdmissionTest, WhoHasTooManyWaitingIsRefusedAndTheOthersAreNot) {
  std::vector<std::shared_ptr<NotedCall>> calls;
  for (int i = 0; i < 5; ++i) {
    calls.push_back(Make("a"));
    ASSERT_TRUE(Arrive(calls.back(), "a").ok());
  }
  const auto refused = Make("a");
  const absl::Status status = Arrive(refused, "a").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a has 3 calls waiting"));
  admission_.Leave(*refused);  // nothing to give back
  EXPECT_EQ(*Arrive(Make("b"), "b"), Verdict::kStart);
  EXPECT_EQ(admission_.numbers().calls, 3u);
}

TEST_F(AdmissionTest, StreamsHavePlacesOfTheirOwnThatCallsDoNotTake) {
  const auto a1 = Make("a1"), a2 = Make("a2"), s1 = Make("s1"), s2 = Make("s2");
  ASSERT_EQ(*Arrive(a1, "a"), Verdict::kStart);
  ASSERT_EQ(*Arrive(a2, "a"), Verdict::kStart);
  EXPECT_EQ(*Arrive(s1, "a", Admission::Kind::kStream), Verdict::kStart);
  EXPECT_EQ(*Arrive(s2, "a", Admission::Kind::kDialogue), Verdict::kStart);
  EXPECT_EQ(Arrive(Make("s3"), "a", Admission::Kind::kDialogue).status().code(),
            absl::StatusCode::kResourceExhausted);
  admission_.Leave(*s2);
  EXPECT_EQ(*Arrive(Make("s4"), "a", Admission::Kind::kDialogue), Verdict::kStart);
}

TEST_F(AdmissionTest, RequestsHaveAShareOfMemoryAndOneAloneMayBeLarger) {
  const auto a1 = Make("a1"), a2 = Make("a2"), b1 = Make("b1");
  for (const auto& call : {a1, a2}) ASSERT_TRUE(Arrive(call, "a").ok());
  ASSERT_TRUE(Arrive(b1, "b").ok());
  EXPECT_TRUE(admission_.TakeRequest(*a1, 2 << 20).ok());
  EXPECT_EQ(admission_.TakeRequest(*a2, 1 << 20).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(admission_.TakeRequest(*a2, 1000).ok());  // small ones are bounded by their number
  EXPECT_TRUE(admission_.TakeRequest(*b1, 1 << 20).code() == absl::StatusCode::kResourceExhausted);
  admission_.Leave(*a1);
  EXPECT_TRUE(admission_.TakeRequest(*b1, 1 << 20).ok());
  admission_.Leave(*a2);
  admission_.Leave(*b1);
  EXPECT_EQ(admission_.numbers().request_bytes, 0);
}

TEST_F(AdmissionTest, WhoLeavesAnswersUnreadIsAnsweredNoMore) {
  const auto a1 = Make("a1"), a2 = Make("a2"), b1 = Make("b1");
  for (const auto& call : {a1, a2}) ASSERT_TRUE(Arrive(call, "a").ok());
  ASSERT_TRUE(Arrive(b1, "b").ok());
  EXPECT_TRUE(admission_.HoldAnswer(*a1, 2 << 20).ok());
  EXPECT_EQ(admission_.HoldAnswer(*a2, 1 << 20).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(admission_.HoldAnswer(*b1, 1000).ok());
  const absl::Status status = Arrive(Make("a3"), "a").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("a has not read answers of 3 MB"));
  admission_.Leave(*a1);
  EXPECT_TRUE(admission_.HoldAnswer(*a2, 1 << 20).ok());
  EXPECT_TRUE(admission_.HoldAnswer(*a2, 10).ok());  // in place of it
  EXPECT_EQ(admission_.numbers().answer_bytes, 1010);
}

TEST_F(AdmissionTest, WhatIsReadTooSlowlyIsAborted) {
  const auto request = Make("request"), answer = Make("answer"), busy = Make("busy");
  ASSERT_TRUE(Arrive(request, "a").ok());
  ASSERT_TRUE(Arrive(answer, "b").ok());
  ASSERT_TRUE(Arrive(busy, "c").ok());
  admission_.Read(*answer);
  admission_.Read(*busy);
  clock_.Advance(absl::Seconds(20));
  ASSERT_TRUE(admission_.HoldAnswer(*answer, 1 << 20).ok());
  clock_.Advance(absl::Seconds(11));
  admission_.Tick();
  EXPECT_TRUE(request->is_aborted);
  EXPECT_FALSE(answer->is_aborted);
  clock_.Advance(absl::Seconds(20));
  admission_.Tick();
  EXPECT_TRUE(answer->is_aborted);
  EXPECT_FALSE(busy->is_aborted);
}

TEST_F(AdmissionTest, SlowRequestsOfManyDoNotKeepOthersFromReading) {
  std::vector<std::shared_ptr<NotedCall>> slow;
  for (uint32_t i = 0; i < Admission::kAllReadings; ++i) {
    slow.push_back(Make("slow"));
    ASSERT_EQ(*Arrive(slow.back(), std::to_string(i)), Verdict::kStart);
  }
  const auto honest = Make("honest");
  ASSERT_EQ(*Arrive(honest, "honest"), Verdict::kWait);
  admission_.Tick();
  EXPECT_FALSE(slow.front()->is_aborted);
  clock_.Advance(absl::Seconds(2));
  admission_.Tick();
  EXPECT_TRUE(slow.front()->is_aborted);
  admission_.Leave(*slow.front());
  EXPECT_THAT(started_, ElementsAre("honest"));
}

TEST_F(AdmissionTest, WhoCallsTooOftenWaitsForItsRate) {
  for (int i = 0; i < 2000; ++i) {
    const auto call = Make("a");
    ASSERT_EQ(*Arrive(call, "a"), Verdict::kStart) << i;
    admission_.Leave(*call);
  }
  const auto late = Make("late");
  EXPECT_EQ(*Arrive(late, "a"), Verdict::kWait);
  EXPECT_EQ(*Arrive(Make("b"), "b"), Verdict::kStart);
  admission_.Tick();
  EXPECT_THAT(started_, ElementsAre());
  clock_.Advance(absl::Milliseconds(2));
  admission_.Tick();
  EXPECT_THAT(started_, ElementsAre("late"));
}

TEST_F(AdmissionTest, CallersAreForgottenWhenTheyHaveNothing) {
  for (int i = 0; i < 100; ++i) {
    const auto call = Make("x");
    ASSERT_TRUE(Arrive(call, std::to_string(i)).ok());
    admission_.Leave(*call);
  }
  EXPECT_EQ(admission_.numbers().callers, 100u);
  clock_.Advance(absl::Seconds(1));
  admission_.Tick();
  EXPECT_EQ(admission_.numbers().callers, 0u);
}

TEST_F(AdmissionTest, EverythingIsGivenBackWhateverTheOrder) {
  const auto seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<std::shared_ptr<NotedCall>> in;
  for (int step = 0; step < 5000; ++step) {
    const auto pick = [&] { return in[random() % in.size()]; };
    switch (in.empty() ? 0 : random() % 5) {
      case 0:
      case 1: {
        const auto kind = random() % 3 == 0 ? Admission::Kind::kStream : Admission::Kind::kCall;
        const auto call = Make("x");
        const auto verdict =
            Arrive(call, std::string(1, static_cast<char>('a' + random() % 4)), kind);
        if (verdict.ok() && *verdict == Verdict::kStart) in.push_back(call);
        break;
      }
      case 2:
        admission_.Read(*pick());
        break;
      case 3:
        (void)admission_.TakeRequest(*pick(), random() % (1 << 20));
        (void)admission_.HoldAnswer(*pick(), random() % (1 << 20));
        break;
      default: {
        const size_t i = random() % in.size();
        admission_.Leave(*in[i]);
        in.erase(in.begin() + static_cast<ptrdiff_t>(i));
      }
    }
    clock_.Advance(absl::Microseconds(random() % 1000));
  }
  for (const auto& call : in) admission_.Leave(*call);
  const Admission::Numbers numbers = admission_.numbers();
  EXPECT_EQ(numbers.request_bytes, 0);
  EXPECT_EQ(numbers.answer_bytes, 0);
}

TEST(UnixConnectionsTest, AUserLosesTheIdlestOfTooMany) {
  ManualClock clock;
  UnixConnections connections({.of_user = 2, .of_all = 3, .longest_silence = absl::Seconds(10)},
                              &clock);
  std::vector<std::pair<int, int>> ends(4);  // ours, the client's
  for (auto& [ours, theirs] : ends) {
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    ours = pair[0];
    theirs = pair[1];
  }
  const auto is_shut = [](int theirs) {
    char byte;
    return recv(theirs, &byte, 1, 0) == 0;
  };
  EXPECT_TRUE(connections.Admit(ends[0].first, 7));
  connections.CallBegins(ends[0].first);
  EXPECT_TRUE(connections.Admit(ends[1].first, 7));
  EXPECT_FALSE(connections.Admit(ends[2].first, 7));  // too fast
  clock.Advance(absl::Seconds(2));
  EXPECT_TRUE(connections.Admit(ends[2].first, 7));
  EXPECT_FALSE(is_shut(ends[0].second));  // it has a call
  EXPECT_TRUE(is_shut(ends[1].second));
  connections.CallBegins(ends[2].first);
  EXPECT_FALSE(connections.Admit(ends[3].first, 7));  // none is idle
  EXPECT_TRUE(connections.Admit(ends[3].first, 8));
  connections.CallEnds(ends[2].first);
  clock.Advance(absl::Seconds(11));
  connections.Tick();
  EXPECT_TRUE(is_shut(ends[3].second));  // has never called
  EXPECT_FALSE(is_shut(ends[2].second));
  EXPECT_EQ(connections.size(), 2u);
  for (const auto& [ours, theirs] : ends) {
    close(ours);
    close(theirs);
  }
}

}  // namespace
}  // namespace coppice::admission_test
