// The agent between processes and a daemon: what it passes on, what it refuses, what it cancels,
// and what it announces.
#include "agents/node/node_agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "coppice/v1/trees.pb.h"
#include "tests/unit/agents/node/local_peer.h"
#include "tests/unit/agents/node/standing_daemon.h"

namespace coppice::node_agent_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kGetTree[] = "/coppice.v1.Trees/GetTree";
constexpr char kWatchTrees[] = "/coppice.v1.Trees/WatchTrees";
constexpr char kGetJob[] = "/coppice.v1.Jobs/GetJob";
constexpr char kGetAgent[] = "/coppice.v1.Local/GetAgent";

std::string TreeRequest(const std::string& id) {
  v1::GetTreeRequest request;
  request.set_id(id);
  return request.SerializeAsString();
}

size_t ThreadsOfThisProcess() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    count += entry.is_directory() ? 1 : 0;
  }
  return count;
}

TEST(NodeAgentTest, PassesCallsOnInTheUsersName) {
  StandingDaemon daemon;
  StandingAgent agent(daemon.address());
  LocalPeer peer(agent.socket());
  peer.Call(1, kGetTree, TreeRequest("41"));
  std::string message;
  EXPECT_EQ(peer.ReadEnd(&message).code(), 0u);
  v1::Tree tree;
  ASSERT_TRUE(tree.ParseFromString(message));
  EXPECT_EQ(tree.id(), "41");
  // Never the login name: it may be no metadata, or the digits of another.
  EXPECT_EQ(tree.reason(), std::to_string(getuid()));
  peer.Call(2, kGetTree, TreeRequest("0"));
  const v1::LocalEnd end = peer.ReadEnd();
  EXPECT_EQ(end.code(), static_cast<uint32_t>(grpc::StatusCode::NOT_FOUND));
  EXPECT_EQ(end.message(), "tree 0: none");
  EXPECT_EQ(end.details(), "details");
}

TEST(NodeAgentTest, SaysWhatItIs) {
  StandingDaemon daemon;
  StandingAgent agent(daemon.address());
  ASSERT_TRUE(daemon.Await([&] { return !daemon.hellos.empty(); }));
  const auto hello = daemon.Locked([&] { return daemon.hellos.front(); });
  EXPECT_EQ(hello.host(), "n1");
  EXPECT_THAT(hello.port_guids(), testing::ElementsAre("0002c90300a1b2c3"));
  EXPECT_EQ(hello.cores(), 4u);
  EXPECT_EQ(hello.version(), "0.1.0");
  EXPECT_THAT(hello.measure_address(), StartsWith("127.0.0.1:"));
  LocalPeer peer(agent.socket());
  peer.Call(1, kGetAgent);
  std::string message;
  EXPECT_EQ(peer.ReadEnd(&message).code(), 0u);
  v1::GetAgentResponse response;
  ASSERT_TRUE(response.ParseFromString(message));
  EXPECT_EQ(response.host(), "n1");
  EXPECT_EQ(response.server(), daemon.address());
  EXPECT_TRUE(response.connected());
  EXPECT_EQ(response.cores(), 4u);
}

// Every address is none that another could call.
TEST(NodeAgentTest, ListeningEverywhereItIsReachedByItsName) {
  StandingDaemon daemon;
  StandingAgent agent(daemon.address());
  agent.MeasureAt("0.0.0.0:0");
  agent.Restart();
  EXPECT_TRUE(daemon.Await([&] {  // the first start may have ended before it was heard
    return !daemon.hellos.empty() &&
           absl::StartsWith(daemon.hellos.back().measure_address(), "node:");
  }));
}

TEST(NodeAgentTest, RefusesWhatItDoesNotPassOn) {
  StandingDaemon daemon;
  StandingAgent agent(daemon.address());
  LocalPeer peer(agent.socket());
  for (const char* method :
       {"/coppice.v1.Admin/Reload", "/coppice.v1.Fabric/Sweep", "/coppice.v1.Admin/ListDeeds",
        "/coppice.v1.Agents/Connect", "", "x"}) {
    peer.Call(1, method);
    const v1::LocalEnd end = peer.ReadEnd();
    EXPECT_EQ(end.code(), static_cast<uint32_t>(grpc::StatusCode::UNIMPLEMENTED));
    EXPECT_THAT(end.message(), HasSubstr(method));
  }
}

// Each gets an error and is closed; others do not notice.
TEST(NodeAgentTest, GarbageIsClosed) {
  StandingDaemon daemon;
  StandingAgent agent(daemon.address());
  LocalPeer good(agent.socket());
  for (const std::string& garbage :
       {std::string("\xff\xff\xff\xff", 4), std::string("\x02\0\0\0\x0a\x7f", 6),
        std::string("GET / HTTP/1.1\r\n\r\n")}) {
    LocalPeer bad(agent.socket());
    bad.SendBytes(garbage);
    const auto reply = bad.Read();
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->end().code(), static_cast<uint32_t>(grpc::StatusCode::INVALID_ARGUMENT));
    EXPECT_FALSE(bad.Read().has_value());
  }
  LocalPeer twice(agent.socket());
  twice.Call(1, kGetJob);
  twice.Call(1, kGetJob);
  EXPECT_THAT(twice.ReadEnd().message(), HasSubstr("call 1 is still open"));
  EXPECT_FALSE(twice.Read().has_value());
  good.Call(1, kGetTree, TreeRequest("1"));
  EXPECT_EQ(good.ReadEnd().code(), 0u);
}

TEST(NodeAgentTest, ACancelAndAVanishedProcessReachTheDaemon) {
  StandingDaemon daemon;
  StandingAgent agent(daemon.address());
  LocalPeer peer(agent.socket());
  peer.Call(1, kGetJob);
  ASSERT_TRUE(daemon.Await([&] { return daemon.hanging == 1; }));
  peer.Cancel(1);
  peer.Cancel(99);  // nobody's
  EXPECT_EQ(peer.ReadEnd().code(), static_cast<uint32_t>(grpc::StatusCode::CANCELLED));
  EXPECT_TRUE(daemon.Await([&] { return daemon.hanging_cancelled == 1; }));
  peer.Call(2, kGetJob);
  peer.Call(3, kWatchTrees);
  ASSERT_TRUE(daemon.Await([&] { return daemon.hanging == 2 && daemon.watches == 1; }));
  peer.Close();
  EXPECT_TRUE(
      daemon.Await([&] { return daemon.hanging_cancelled == 2 && daemon.watches_cancelled == 1; }));
}

TEST(NodeAgentTest, ADeadlineIsTheDaemons) {
  StandingDaemon daemon;
  StandingAgent agent(daemon.address());
  LocalPeer peer(agent.socket());
  peer.Call(1, kGetJob, "", 50);
  EXPECT_EQ(peer.ReadEnd().code(), static_cast<uint32_t>(grpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_TRUE(daemon.Await([&] { return daemon.hanging == daemon.hanging_cancelled; }));
}

// The daemon stops writing once the agent holds a megabyte for the process, besides what sockets
// and gRPC hold; others are served meanwhile.
TEST(NodeAgentTest, ASlowReaderIsWaitedFor) {
  StandingDaemon daemon;
  StandingAgent agent(daemon.address());
  LocalPeer slow(agent.socket()), quick(agent.socket());
  slow.Call(1, kWatchTrees, "", 0);
  uint64_t before = ~uint64_t{0};
  for (;;) {
    // As long as it takes to ask 50 things no message was written: it stands.
    for (uint64_t call = 1; call <= 50; ++call) {
      quick.Call(call, kGetTree, TreeRequest("1"));
      EXPECT_EQ(quick.ReadEnd().code(), 0u);
    }
    const uint64_t now = daemon.Locked([&] { return daemon.watch_messages; });
    if (now > 0 && now == before) break;
    before = now;
  }
  EXPECT_LT(before, 200u);  // 20 MB
  for (uint64_t i = 0; i < before + 50; ++i) ASSERT_TRUE(slow.Read().has_value());
}

TEST(NodeAgentTest, OneConnectionHasSoManyCalls) {
  StandingDaemon daemon;
  StandingAgent agent(daemon.address());
  LocalPeer peer(agent.socket());
  // The daemon's threads are taken by the first ones; others wait there.
  for (uint64_t call = 0; call <= 256; ++call) peer.Call(call, kGetJob);
  const v1::LocalEnd end = peer.ReadEnd();
  EXPECT_EQ(end.code(), static_cast<uint32_t>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_THAT(end.message(), HasSubstr("256"));
}

TEST(NodeAgentTest, ProcessesCostNoThreads) {
  StandingDaemon daemon;
  StandingAgent agent(daemon.address());
  std::vector<std::unique_ptr<LocalPeer>> peers;
  const auto ask_all = [&] {
    for (const auto& peer : peers) peer->Call(1, kGetTree, TreeRequest("1"));
    for (const auto& peer : peers) EXPECT_EQ(peer->ReadEnd().code(), 0u);
  };
  for (int i = 0; i < 64; ++i) peers.push_back(std::make_unique<LocalPeer>(agent.socket()));
  ask_all();
  const size_t before = ThreadsOfThisProcess();
  for (int i = 0; i < 448; ++i) peers.push_back(std::make_unique<LocalPeer>(agent.socket()));
  ask_all();
  // gRPC's server in this process has more or fewer, by its load: 118 more were seen on a busy
  // machine. A thread for each of the 448 would be far above that.
  EXPECT_LT(ThreadsOfThisProcess(), before + 224);
}

TEST(NodeAgentTest, ServesWithoutADaemonAndAgainWithOne) {
  StandingDaemon daemon;
  daemon.Stop();
  StandingAgent agent(daemon.address());
  LocalPeer peer(agent.socket());
  peer.Call(1, kGetTree, TreeRequest("1"));
  EXPECT_EQ(peer.ReadEnd().code(), static_cast<uint32_t>(grpc::StatusCode::UNAVAILABLE));
  peer.Call(2, kGetAgent);
  std::string message;
  EXPECT_EQ(peer.ReadEnd(&message).code(), 0u);
  v1::GetAgentResponse response;
  ASSERT_TRUE(response.ParseFromString(message));
  EXPECT_FALSE(response.connected());
  daemon.Start();
  uint32_t code = ~0u;
  for (uint64_t call = 3; code != 0; ++call) {
    peer.Call(call, kGetTree, TreeRequest("1"));
    code = peer.ReadEnd().code();
  }
  EXPECT_TRUE(daemon.Await([&] { return daemon.hellos.size() == 1; }));
}

TEST(NodeAgentTest, IsAnnouncedAnewAfterARestartOfTheDaemon) {
  StandingDaemon daemon;
  StandingAgent agent(daemon.address());
  ASSERT_TRUE(daemon.Await([&] { return daemon.hellos.size() == 1; }));
  daemon.Stop();
  daemon.Start();
  EXPECT_TRUE(daemon.Await([&] { return daemon.hellos.size() == 2; }));
}

TEST(NodeAgentTest, ADaemonThatKnowsNoAgentsServesTheNodeAllTheSame) {
  StandingDaemon daemon;
  daemon.connect_status = {grpc::StatusCode::UNIMPLEMENTED, "no such service"};
  StandingAgent agent(daemon.address());
  ASSERT_TRUE(daemon.Await([&] { return daemon.hellos.size() == 1; }));
  LocalPeer peer(agent.socket());
  peer.Call(1, kGetTree, TreeRequest("1"));
  EXPECT_EQ(peer.ReadEnd().code(), 0u);
}

TEST(NodeAgentTest, OneThatIsNotKnownYetTriesAgain) {
  StandingDaemon daemon;
  daemon.connect_status = {grpc::StatusCode::NOT_FOUND, "host n1: not in the fabric"};
  StandingAgent agent(daemon.address());
  EXPECT_TRUE(daemon.Await([&] { return daemon.hellos.size() == 3; }));
}

TEST(NodeAgentTest, AnswersTasks) {
  StandingDaemon daemon;
  v1::PingPongTask task;
  task.set_id(5);
  task.set_active(true);
  task.set_peer("n2");
  task.set_peer_address("nowhere");
  task.set_token(std::string(32, 'a'));
  task.set_latency_samples(1);
  daemon.Locked([&] {
    daemon.tasks = {task};
    return 0;
  });
  StandingAgent agent(daemon.address());
  ASSERT_TRUE(daemon.Await([&] { return daemon.results.size() == 1; }));
  EXPECT_EQ(daemon.results[0].id(), 5u);
  EXPECT_THAT(daemon.results[0].error(), HasSubstr("n2"));
}

// One of them holds the folder and has not listened yet.
TEST(NodeAgentTest, AnAgentThatStartsKeepsItsSocketFromAnother) {
  char folder[] = "/tmp/coppice-node-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  Settings settings;
  settings.server = "unix:/nonexistent/d.sock";
  settings.state_dir = folder;
  settings.socket = settings.state_dir + "/a.sock";
  settings.measure_listen = "";
  const auto first = TakeStateLock(folder);
  ASSERT_TRUE(first.ok()) << first.status();
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, settings.socket.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  {
    const auto loop = *EventLoop::Create();
    const auto second = NodeAgent::Start(settings, {}, "0.1.0", loop.get());
    EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(second.status().message()), HasSubstr("state_dir"));
  }
  ASSERT_EQ(listen(fd, 1), 0);
  LocalPeer process(settings.socket);  // reaches the first
  EXPECT_GE(accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC), 0);
  close(fd);
  std::filesystem::remove_all(folder);
}

TEST(NodeAgentTest, ASecondAgentAtTheSocketIsRefused) {
  StandingDaemon daemon;
  StandingAgent agent(daemon.address());
  auto loop = EventLoop::Create();
  ASSERT_TRUE(loop.ok());
  Settings settings;
  settings.server = daemon.address();
  settings.socket = agent.socket();
  settings.state_dir = agent.state_dir();
  settings.measure_listen = "";
  const auto second = NodeAgent::Start(settings, {}, "0.1.0", loop->get());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(agent.socket()));
  settings.socket = agent.state_dir() + "/b.sock";
  const auto beside = NodeAgent::Start(settings, {}, "0.1.0", loop->get());
  EXPECT_EQ(beside.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(beside.status().message()), HasSubstr("state_dir"));
  settings.socket = "/nonexistent/a.sock";
  const auto nowhere = NodeAgent::Start(settings, {}, "0.1.0", loop->get());
  EXPECT_EQ(nowhere.status().code(), absl::StatusCode::kUnavailable);
  settings.socket = std::string(200, 'x');
  EXPECT_EQ(NodeAgent::Start(settings, {}, "0.1.0", loop->get()).status().code(),
            absl::StatusCode::kInvalidArgument);
  settings.measure_listen = "nowhere";
  EXPECT_EQ(NodeAgent::Start(settings, {}, "0.1.0", loop->get()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace coppice::node_agent_test
