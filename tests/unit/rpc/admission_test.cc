// Places, turns and shares of callers, by calls that only note what becomes of them.
#include "daemon/rpc/calls/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "daemon/rpc/listen/connections.h"
#include "daemon/rpc/listen/unix_users.h"
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
  void Abort(const absl::Status& why) override {
    EXPECT_EQ(why.code(), absl::StatusCode::kUnavailable);
    is_aborted = true;
  }

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
    return admission_.Arrive(call, {.name = name}, kind);
  }
  absl::StatusOr<Verdict> ArriveBy(const std::string& agent, const std::shared_ptr<NotedCall>& call,
                                   const std::string& name) {
    return admission_.Arrive(call, {.name = name, .by = agent, .is_by_agent = true},
                             Admission::Kind::kCall);
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

TEST_F(AdmissionTest, OneLargeRequestTakesNothingFromOthers) {
  const auto a1 = Make("a1"), a2 = Make("a2"), b1 = Make("b1"), c1 = Make("c1");
  for (const auto& call : {a1, a2}) ASSERT_TRUE(Arrive(call, "a").ok());
  ASSERT_TRUE(Arrive(b1, "b").ok());
  ASSERT_TRUE(Arrive(c1, "c").ok());
  EXPECT_TRUE(admission_.TakeRequest(*a1, 100 << 20).ok());
  EXPECT_EQ(admission_.TakeRequest(*a2, 1 << 19).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(admission_.TakeRequest(*a2, 1000).ok());  // small ones are bounded by their number
  EXPECT_EQ(admission_.TakeRequest(*b1, 100 << 20).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(admission_.TakeRequest(*b1, 1 << 20).ok());  // its share
  EXPECT_TRUE(admission_.TakeRequest(*c1, 1 << 20).ok());
  const auto administrator = Make("administrator");
  ASSERT_TRUE(
      admission_
          .Arrive(administrator, {.name = "root", .is_administrator = true}, Admission::Kind::kCall)
          .ok());
  EXPECT_TRUE(admission_.TakeRequest(*administrator, 100 << 20).ok());
  for (const auto& call : {a1, b1}) admission_.Leave(*call);
  EXPECT_TRUE(admission_.TakeRequest(*a2, 100 << 20).ok());
  for (const auto& call : {a2, c1, administrator}) admission_.Leave(*call);
  EXPECT_EQ(admission_.numbers().request_bytes, 0);
}

TEST_F(AdmissionTest, HoweverManyHaveComeSomethingIsLeftForTheNext) {
  constexpr int64_t kPart = 64 << 10;
  std::vector<std::shared_ptr<NotedCall>> calls;
  const auto take_all = [&](const std::string& caller) {
    int64_t taken = 0;
    calls.push_back(Make(caller));
    EXPECT_EQ(*Arrive(calls.back(), caller), Verdict::kStart);
    while (taken < 4 << 20 && admission_.HoldAnswer(*calls.back(), taken + kPart).ok()) {
      taken += kPart;
    }
    EXPECT_TRUE(admission_.HoldAnswer(*calls.back(), taken).ok());
    return taken;
  };
  // The first takes the place for what is larger than a share, too.
  const auto large = Make("large");
  ASSERT_TRUE(Arrive(large, "large").ok());
  ASSERT_TRUE(admission_.HoldAnswer(*large, 100 << 20).ok());
  int64_t last = 4 << 20;
  for (const char* caller : {"a", "b", "c", "d", "e"}) {
    const int64_t taken = take_all(caller);
    EXPECT_GT(taken, 0) << caller;
    EXPECT_LE(taken, last) << caller;
    last = taken;
  }
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
  EXPECT_EQ(admission_.numbers().answer_bytes, 0);   // but for small ones
}

TEST_F(AdmissionTest, WhatWasChangedIsToldWhateverIsUnread) {
  const auto a1 = Make("a1"), a2 = Make("a2"), b1 = Make("b1");
  for (const auto& call : {a1, a2}) ASSERT_TRUE(Arrive(call, "a").ok());
  ASSERT_TRUE(Arrive(b1, "b").ok());
  EXPECT_TRUE(admission_.CanAnswer(*a1).ok());
  EXPECT_TRUE(admission_.HoldAnswer(*a1, 100 << 20).ok());
  EXPECT_TRUE(admission_.HoldAnswer(*a2, 100 << 20, Admission::Answer::kKept).ok());
  EXPECT_EQ(admission_.CanAnswer(*a2).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(admission_.HoldAnswer(*b1, 1 << 20).ok());  // takes nothing from others, either
  for (const auto& call : {a1, a2, b1}) admission_.Leave(*call);
  EXPECT_EQ(admission_.numbers().answer_bytes, 0);
}

TEST_F(AdmissionTest, AnAgentHasABoundForAllThatItNamesAndTakesNobodysPlaces) {
  std::vector<std::shared_ptr<NotedCall>> calls;
  int started = 0;
  const auto arrive = [&](const std::string& name) {
    calls.push_back(Make(name));
    const auto verdict = ArriveBy("rogue", calls.back(), name);
    if (verdict.ok() && *verdict == Verdict::kStart) {
      ++started;
      admission_.Read(*calls.back());
    }
    return verdict.status();
  };
  for (int i = 0; i < 100; ++i) (void)arrive(std::to_string(i));
  EXPECT_EQ(started, 4 * 2);  // calls of so many callers
  EXPECT_EQ(admission_.numbers().agents, 1u);
  const absl::Status status = arrive("slurm");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("for whom rogue calls have 12 calls waiting"));
  // The user himself, by whomever else.
  EXPECT_EQ(*Arrive(Make("slurm"), "slurm"), Verdict::kStart);
  EXPECT_EQ(*ArriveBy("honest", Make("slurm"), "slurm"), Verdict::kStart);
}

TEST_F(AdmissionTest, NamesOfAnAgentDoNotHoldAllPlacesForReading) {
  std::vector<std::shared_ptr<NotedCall>> calls;
  uint32_t reading = 0;
  for (int i = 0; i < 20; ++i) {
    calls.push_back(Make("x"));
    const auto verdict = ArriveBy("rogue", calls.back(), std::to_string(i));
    if (verdict.ok() && *verdict == Verdict::kStart) ++reading;
  }
  EXPECT_EQ(reading, Admission::kReadingsOfAgent);
  EXPECT_EQ(*Arrive(Make("a"), "a"), Verdict::kStart);
}

TEST_F(AdmissionTest, AllHaveABoundTogetherOfWhichNobodyTakesTheRest) {
  AdmissionBounds bounds = Few();
  bounds.streams = 4;
  admission_.SetBounds(bounds);
  std::vector<std::shared_ptr<NotedCall>> calls;
  const auto open = [&](const Caller& caller) {
    calls.push_back(Make(caller.name));
    return admission_.Arrive(calls.back(), caller, Admission::Kind::kDialogue).ok();
  };
  EXPECT_TRUE(open({.name = "a"}));
  EXPECT_TRUE(open({.name = "a"}));
  EXPECT_TRUE(open({.name = "b"}));
  EXPECT_FALSE(open({.name = "b"}));
  EXPECT_TRUE(open({.name = "c"}));
  EXPECT_FALSE(open({.name = "d"}));
  EXPECT_TRUE(open({.name = "root", .is_administrator = true}));
}

TEST_F(AdmissionTest, RefusedCallsCountAgainstTheRate) {
  std::vector<std::shared_ptr<NotedCall>> calls;
  for (int i = 0; i < 5; ++i) {
    calls.push_back(Make(std::to_string(i)));
    ASSERT_TRUE(Arrive(calls.back(), "a").ok());
  }
  for (int i = 0; i < 10'000; ++i) ASSERT_FALSE(Arrive(Make("x"), "a").ok());
  admission_.Leave(*calls[0]);
  EXPECT_THAT(started_, ElementsAre());  // has called too often
  clock_.Advance(absl::Seconds(3));      // but is not kept waiting for longer than that
  admission_.Tick();
  EXPECT_THAT(started_, ElementsAre("2"));
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
    // One of its own each, but for the first two, which are of one caller.
    ASSERT_EQ(*Arrive(slow.back(), std::to_string(std::max(i, 1u))), Verdict::kStart);
  }
  const auto honest = Make("honest");
  ASSERT_EQ(*Arrive(honest, "honest"), Verdict::kWait);
  admission_.Tick();
  EXPECT_FALSE(slow.front()->is_aborted);
  clock_.Advance(absl::Seconds(2));
  admission_.Tick();
  EXPECT_TRUE(slow.front()->is_aborted);
  EXPECT_FALSE(slow.back()->is_aborted);  // has no other
  clock_.Advance(absl::Seconds(9));
  admission_.Tick();
  EXPECT_TRUE(slow.back()->is_aborted);
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
  const auto other = Make("b");
  EXPECT_EQ(*Arrive(other, "b"), Verdict::kStart);
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

TEST(ConnectionsTest, AUserLosesTheIdlestOfTooMany) {
  ManualClock clock;
  Connections connections(Connections::kUnix,
                          {.of_user = 2, .of_all = 3, .longest_silence = absl::Seconds(10)},
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
  EXPECT_TRUE(connections.Admit(ends[0].first, "uid 7"));
  connections.CallBegins(ends[0].first);
  EXPECT_TRUE(connections.Admit(ends[1].first, "uid 7"));
  EXPECT_FALSE(connections.Admit(ends[2].first, "uid 7"));  // too fast
  clock.Advance(absl::Seconds(2));
  EXPECT_TRUE(connections.Admit(ends[2].first, "uid 7"));
  EXPECT_FALSE(is_shut(ends[0].second));  // it has a call
  EXPECT_TRUE(is_shut(ends[1].second));
  EXPECT_TRUE(connections.IsAdmitted(ends[0].first));
  EXPECT_FALSE(connections.IsAdmitted(ends[1].first));
  connections.CallBegins(ends[2].first);
  EXPECT_FALSE(connections.Admit(ends[3].first, "uid 7"));  // none is idle
  EXPECT_TRUE(connections.Admit(ends[3].first, "uid 8"));
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

TEST(ConnectionsTest, ANetworkHasSoManyAndAllHave) {
  ManualClock clock;
  Connections connections(Connections::kTcp, {.tcp_of_address = 2, .tcp_of_all = 100}, &clock, 3);
  std::vector<std::pair<int, int>> ends(5);
  for (auto& [ours, theirs] : ends) {
    int pair[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ours = pair[0];
    theirs = pair[1];
  }
  EXPECT_TRUE(connections.Admit(ends[0].first, "10.0.0.1"));
  EXPECT_TRUE(connections.Admit(ends[1].first, "10.0.0.1"));
  EXPECT_FALSE(connections.Admit(ends[2].first, "10.0.0.1"));
  EXPECT_TRUE(connections.Admit(ends[2].first, "10.0.0.2"));
  EXPECT_FALSE(connections.Admit(ends[3].first, "10.0.0.3"));  // descriptors are kept
  close(ends[0].first);
  clock.Advance(absl::Seconds(1));
  EXPECT_TRUE(connections.Admit(ends[3].first, "10.0.0.1"));
  EXPECT_FALSE(connections.Admit(ends[4].first, "10.0.0.3"));
  EXPECT_EQ(connections.size(), 3u);
  for (const auto& [ours, theirs] : ends) {
    if (ours != ends[0].first) close(ours);
    close(theirs);
  }
}

TEST(NetworkOf, IsTheAddressOrTheNetworkOverIpv6) {
  EXPECT_EQ(NetworkOf("ipv4:10.0.0.1:4711"), "10.0.0.1");
  EXPECT_EQ(NetworkOf("ipv6:%5B2001:db8::1%5D:4711"), "2001:db8::/64");
  EXPECT_EQ(NetworkOf("ipv6:%5B2001:db8::ffff:1%5D:4712"), "2001:db8::/64");
  EXPECT_EQ(NetworkOf("ipv6:[fe80::1%25eth0]:1"), "fe80::/64");
  EXPECT_EQ(NetworkOf("ipv6:%5B::ffff:10.0.0.1%5D:1"), "10.0.0.1");
}

TEST(UnixUsersTest, AreAskedForOnlyIfThatMayBe) {
  UnixUsers users("coppice-admin");
  const auto no = [] { return false; };
  EXPECT_FALSE(users.FindNamed("daemon", no).has_value());
  EXPECT_FALSE(users.FindNamed("4711", no).has_value());
  ASSERT_TRUE(users.FindNamed("daemon").has_value());
  EXPECT_EQ(users.FindNamed("daemon", no)->name, "daemon");  // is known by now
}

}  // namespace
}  // namespace coppice::admission_test
