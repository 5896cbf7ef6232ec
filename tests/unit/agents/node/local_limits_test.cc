// What one user uses up is that user's own.
#include "agents/node/local_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "coppice/v1/trees.pb.h"
#include "tests/unit/agents/node/local_peer.h"
#include "tests/unit/agents/node/standing_daemon.h"

namespace coppice::local_limits_test {
namespace {

using ::testing::HasSubstr;

constexpr char kGetAgent[] = "/coppice.v1.Local/GetAgent";
constexpr char kHoldJob[] = "/coppice.v1.Local/HoldJob";
constexpr uint32_t kExhausted = static_cast<uint32_t>(grpc::StatusCode::RESOURCE_EXHAUSTED);

TEST(LocalLimitsTest, AnotherUserIsStillServed) {
  LocalLimits limits(
      {.connections = 4, .connections_of_user = 3, .bytes = 100, .bytes_of_user = 60});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limits.Connect(1000));
  EXPECT_FALSE(limits.Connect(1000));
  EXPECT_TRUE(limits.Connect(1001));
  EXPECT_FALSE(limits.Connect(1001));  // all are taken
  limits.Disconnect(1000);
  EXPECT_TRUE(limits.Connect(1001));
  EXPECT_TRUE(limits.Change(1000, 0, 60));
  EXPECT_FALSE(limits.Change(1000, 10, 20));
  EXPECT_TRUE(limits.Change(1000, 20, 10));
  EXPECT_TRUE(limits.Change(1001, 0, 40));
  EXPECT_FALSE(limits.Change(1001, 40, 41));  // of all
}

TEST(LocalLimitsTest, AnotherUserMayStillCall) {
  LocalLimits limits({.calls = 4, .calls_of_user = 3});
  EXPECT_TRUE(limits.Connect(1000) && limits.Connect(1001));
  for (int i = 0; i < 3; ++i) limits.BeginCall(1000);
  EXPECT_FALSE(limits.MayBeginCall(1000));
  EXPECT_TRUE(limits.MayBeginCall(1001));
  limits.BeginCall(1001);
  EXPECT_FALSE(limits.MayBeginCall(1001));  // all are taken
  limits.EndCall(1000);
  EXPECT_TRUE(limits.MayBeginCall(1001));
}

TEST(LocalLimitsTest, SomeDescriptorsAreTheAgents) {
  EXPECT_EQ(WithinDescriptors({}, 524'288).connections, LocalBounds().connections);
  EXPECT_EQ(WithinDescriptors({}, 1024).connections, 960u);
  EXPECT_EQ(WithinDescriptors({}, 1024).connections_of_user, 720u);
  EXPECT_EQ(WithinDescriptors({}, 64).connections, 32u);
  EXPECT_EQ(WithinDescriptors({}, 0).connections, 0u);
  EXPECT_GT(MostDescriptors(), 0u);
}

TEST(LocalLimitsTest, TooManyConnectionsAreTold) {
  StandingDaemon daemon;
  StandingAgent agent(daemon.address(), {.connections = 3, .connections_of_user = 2});
  LocalPeer first(agent.socket());
  {
    LocalPeer second(agent.socket());
    for (LocalPeer* peer : {&first, &second}) {
      peer->Call(1, kGetAgent);
      EXPECT_EQ(peer->ReadEnd().code(), 0u);
    }
    LocalPeer third(agent.socket());
    const auto reply = third.Read();
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->end().code(), kExhausted);
    EXPECT_THAT(reply->end().message(), HasSubstr("too many"));
    EXPECT_FALSE(third.Read().has_value());
  }
  for (;;) {  // until the agent has noticed that one has gone
    LocalPeer next(agent.socket());
    next.TryCall(1, kGetAgent);
    const auto reply = next.Read();
    if (reply && reply->has_message()) break;
  }
  first.Call(2, kGetAgent);
  EXPECT_EQ(first.ReadEnd().code(), 0u);
}

// Frames that never end: who sends more than the user's bytes is told and closed, and they are free
// again for the user's others.
TEST(LocalLimitsTest, HalfFramesAreCounted) {
  StandingDaemon daemon;
  StandingAgent agent(daemon.address(), {.bytes = 4 << 20, .bytes_of_user = 2 << 20});
  const std::string length("\xff\xff\xff\x03", 4);
  LocalPeer silent(agent.socket());
  silent.SendBytes(length + std::string(1 << 20, 'x'));
  for (int i = 0; i < 10; ++i) {
    LocalPeer greedy(agent.socket());
    greedy.TrySendBytes(length + std::string(3 << 20, 'x'));
    const auto reply = greedy.Read();
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->end().code(), kExhausted);
    EXPECT_THAT(reply->end().message(), HasSubstr("bytes"));
    LocalPeer modest(agent.socket());
    modest.Call(1, kGetAgent);
    EXPECT_EQ(modest.ReadEnd().code(), 0u);
  }
}

TEST(LocalLimitsTest, HoldsAreCalls) {
  StandingDaemon daemon;
  daemon.Stop();
  StandingAgent agent(daemon.address());
  LocalPeer peer(agent.socket());
  v1::HoldJobRequest request;
  request.set_job_id("7");
  v1::LocalRequest call;
  call.set_call(1);
  call.set_method(kHoldJob);
  call.set_message(request.SerializeAsString());
  // In one piece, so that none is answered between two of them.
  std::string frames;
  for (int i = 0; i < 2; ++i) AppendFrame(call.SerializeAsString(), frames);
  peer.SendBytes(frames);
  EXPECT_THAT(peer.ReadEnd().message(), HasSubstr("call 1 is still open"));
  EXPECT_FALSE(peer.Read().has_value());
}

}  // namespace
}  // namespace coppice::local_limits_test
