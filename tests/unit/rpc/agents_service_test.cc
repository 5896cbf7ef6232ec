// The Agents service over a real server, with agents that the test plays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/unit/rpc/loopback.h"
#include "tests/unit/rpc/scripted_agent.h"
#include "tests/unit/rpc/users.h"

namespace coppice::agents_service_test {
namespace {

using absl::StatusCode;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using AgentsStub = v1::Agents::Stub;

void ExpectStatus(const absl::Status& status, StatusCode code, const std::string& words) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

// The active side answers with a distance by which its pair is told from others.
std::optional<v1::AgentMessage> Measured(const v1::PingPongTask& task) {
  if (!task.active()) return std::nullopt;
  return Result(task.id(), 2.5, 10);
}

class AgentsServiceTest : public ::testing::Test {
 protected:
  AgentsServiceTest() : channel_(loopback_.Connect()), stub_(v1::Agents::NewStub(channel_)) {}

  // The fabric's name of a host.
  std::string Host(uint32_t i) {
    const auto view = loopback_.manager().fabric();
    return std::string(view->snapshot->fabric->host_name(HostIndex(i)));
  }
  std::vector<v1::Agent> Agents() {
    const auto list = loopback_.Call(*stub_, &AgentsStub::ListAgents, v1::ListAgentsRequest());
    EXPECT_TRUE(list.ok()) << list.status();
    return {list->agents().begin(), list->agents().end()};
  }
  absl::StatusOr<v1::MeasureSummary> Measure(const v1::MeasureDistancesRequest& request = {},
                                             std::vector<v1::MeasureProgress>* progress = nullptr) {
    grpc::ClientContext context;
    Loopback::SetDeadline(context);
    const auto stream = stub_->MeasureDistances(&context, request);
    v1::MeasureDistancesUpdate update;
    v1::MeasureSummary summary;
    while (stream->Read(&update)) {
      if (update.has_progress() && progress != nullptr) progress->push_back(update.progress());
      if (update.has_summary()) summary = update.summary();
    }
    const absl::Status status = Loopback::ToAbsl(stream->Finish());
    if (!status.ok()) return status;
    return summary;
  }
  absl::StatusOr<v1::ListDistancesResponse> Distances(
      const v1::ListDistancesRequest& request = {}) {
    return loopback_.Call(*stub_, &AgentsStub::ListDistances, request);
  }
  // Until `condition` holds; the streams of this process need no more than moments.
  template <class Condition>
  void Await(const Condition& condition) {
    while (!condition()) std::this_thread::yield();
  }

  Loopback loopback_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<AgentsStub> stub_;
};

TEST_F(AgentsServiceTest, WelcomesAndListsAgents) {
  AgentCall call(channel_);
  ASSERT_TRUE(call.Say(Hello(Host(3))));
  const auto welcome = call.Hear();
  ASSERT_TRUE(welcome.has_value() && welcome->has_welcome());
  EXPECT_EQ(welcome->welcome().host(), Host(3));
  const std::vector<v1::Agent> agents = Agents();
  ASSERT_EQ(agents.size(), 1u);
  EXPECT_TRUE(agents[0].connected());
  EXPECT_EQ(agents[0].hello().host(), Host(3));
  EXPECT_EQ(agents[0].hello().cores(), 8u);
  EXPECT_EQ(loopback_.server().Numbers().rpc.agents, 1u);
  call.SayNoMore();
  EXPECT_TRUE(call.End().ok());
  Await([&] { return loopback_.meter().connected() == 0; });
  ASSERT_EQ(Agents().size(), 1u);
  EXPECT_FALSE(Agents()[0].connected());
}

TEST_F(AgentsServiceTest, FindsTheHostByPortAndByShortName) {
  const auto view = loopback_.manager().fabric();
  const Fabric& fabric = *view->snapshot->fabric;
  v1::AgentMessage by_port = Hello("another-name");
  by_port.mutable_hello()->add_port_guids("00000000000000ff");  // not cabled
  by_port.mutable_hello()->add_port_guids(ToString(fabric.endpoint(EndpointIndex(5)).port_guid));
  const std::vector<std::pair<v1::AgentMessage, std::string>> cases = {
      {by_port, std::string(fabric.host_name(fabric.host(EndpointIndex(5))))},
      {Hello(Host(2) + ".cluster.example"), Host(2)}};
  for (const auto& [hello, host] : cases) {
    AgentCall call(channel_);
    call.Say(hello);
    const auto welcome = call.Hear();
    ASSERT_TRUE(welcome.has_value());
    EXPECT_EQ(welcome->welcome().host(), host);
  }
}

TEST_F(AgentsServiceTest, RefusesBadMessages) {
  const auto refused = [&](const std::vector<v1::AgentMessage>& messages, StatusCode code,
                           const std::string& words) {
    AgentCall call(channel_);
    for (const v1::AgentMessage& message : messages) call.Say(message);
    ExpectStatus(call.End(), code, words);
  };
  refused({v1::AgentMessage()}, StatusCode::kInvalidArgument, "say who you are");
  refused({Result(1, 1, 1)}, StatusCode::kInvalidArgument, "say who you are");
  refused({Hello("")}, StatusCode::kInvalidArgument, "hello.host");
  refused({Hello("two words")}, StatusCode::kInvalidArgument, "two words");
  refused({Hello(std::string(300, 'x'))}, StatusCode::kInvalidArgument, "hello.host");
  refused({Hello("nowhere")}, StatusCode::kNotFound, "no host nowhere");
  for (const char* port : {"", "12", "zzzzzzzzzzzzzzzz", "00000000000000ff0"}) {
    v1::AgentMessage hello = Hello(Host(0));
    hello.mutable_hello()->add_port_guids(port);
    refused({hello}, StatusCode::kInvalidArgument, "hello.port_guids");
  }
  for (const char* address : {"10.0.0.1", ":1", "host:", "host:0", "host:65536", "a b:1"}) {
    v1::AgentMessage hello = Hello(Host(0));
    hello.mutable_hello()->set_measure_address(address);
    refused({hello}, StatusCode::kInvalidArgument, "hello.measure_address");
  }
  refused({Hello(Host(0)), Hello(Host(0))}, StatusCode::kInvalidArgument, "second one");
  refused({Hello(Host(0)), v1::AgentMessage()}, StatusCode::kInvalidArgument, "empty");
  refused({Hello(Host(0)), Result(7, 1, 1)}, StatusCode::kInvalidArgument, "7 is no task");
  refused({Hello(Host(0)), Result(7, 0, 1)}, StatusCode::kInvalidArgument, "latency_us: 0");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  refused({Hello(Host(0)), Result(7, 1, nan)}, StatusCode::kInvalidArgument, "bandwidth_gbps: nan");
  refused({Hello(Host(0)), Result(7, 1e308, 1)}, StatusCode::kInvalidArgument, "0.01 to 1e+07");
  refused({Hello(Host(0)), Result(7, 1, 1e308)}, StatusCode::kInvalidArgument, "1e-06 to 10000");
  v1::AgentMessage many = Hello(Host(0));
  many.mutable_hello()->set_cores(1'000'000);
  refused({many}, StatusCode::kInvalidArgument, "hello.cores: 1000000");
  Await([&] { return loopback_.meter().connected() == 0; });
}

TEST_F(AgentsServiceTest, TheNewestAgentIsTheHosts) {
  AgentCall first(channel_);
  first.Say(Hello(Host(1)));
  ASSERT_TRUE(first.Hear().has_value());
  AgentCall second(channel_);
  second.Say(Hello(Host(1)));
  ASSERT_TRUE(second.Hear().has_value());
  ExpectStatus(first.End(), StatusCode::kAborted, Host(1));
  const std::vector<v1::Agent> agents = Agents();
  ASSERT_EQ(agents.size(), 1u);
  EXPECT_TRUE(agents[0].connected());
}

TEST_F(AgentsServiceTest, MeasuresEveryPairOnce) {
  std::vector<std::unique_ptr<ScriptedAgent>> agents;
  for (uint32_t i = 0; i < 6; ++i) {
    agents.push_back(std::make_unique<ScriptedAgent>(channel_, Host(i), Measured));
  }
  std::vector<v1::MeasureProgress> progress;
  const auto summary = Measure({}, &progress);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->pairs(), 15u);
  EXPECT_EQ(summary->rounds(), 5u);
  EXPECT_EQ(summary->failed(), 0u);
  EXPECT_THAT(summary->failures(), IsEmpty());
  for (const v1::MeasureProgress& p : progress) EXPECT_EQ(p.pairs(), 3 * p.round());
  for (const auto& agent : agents) {
    Await([&] { return agent->tasks() >= 5; });  // the passive side's may still be on its way
    EXPECT_EQ(agent->tasks(), 5);
  }
  const auto list = Distances();
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->distances_size(), 15);
  EXPECT_EQ(list->distances(0).latency_us(), 2.5);
  EXPECT_EQ(list->distances(0).latency_spread_us(), 0.25);
  EXPECT_EQ(list->distances(0).bandwidth_gbps(), 10);
  EXPECT_EQ(list->distances(0).samples(), 90u);
  EXPECT_GT(list->distances(0).measured().seconds(), 0);
  EXPECT_EQ(loopback_.server().Numbers().rpc.measured_distances, 15u);
}

TEST_F(AgentsServiceTest, WhatIsMeasuredOverIsAskedForAndTold) {
  AgentCall calls[] = {AgentCall(channel_), AgentCall(channel_)};
  for (uint32_t i = 0; i < 2; ++i) {
    v1::AgentMessage hello = Hello(Host(i));
    hello.mutable_hello()->set_verbs(true);
    calls[i].Say(hello);
    ASSERT_TRUE(calls[i].Hear().has_value());
  }
  EXPECT_TRUE(Agents()[0].hello().verbs());
  absl::StatusOr<v1::MeasureSummary> summary;
  std::thread measuring([&] { summary = Measure(); });
  for (AgentCall& call : calls) {
    const auto task = call.Hear();
    EXPECT_TRUE(task.has_value() && task->ping_pong().transport() == v1::TRANSPORT_VERBS);
    EXPECT_TRUE(task.has_value() && task->ping_pong().or_tcp());
    if (!task.has_value() || !task->ping_pong().active()) continue;
    v1::AgentMessage result = Result(task->ping_pong().id(), 1, 100);
    result.mutable_ping_pong()->set_transport(v1::TRANSPORT_VERBS);
    call.Say(result);
  }
  measuring.join();
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->over_verbs(), 1u);
  v1::ListDistancesRequest request;
  ASSERT_EQ(Distances(request)->distances_size(), 1);
  EXPECT_EQ(Distances(request)->distances(0).transport(), v1::TRANSPORT_VERBS);
  request.set_transport(v1::TRANSPORT_TCP);
  EXPECT_EQ(Distances(request)->distances_size(), 0);
  request.set_transport(static_cast<v1::Transport>(3));
  ExpectStatus(Distances(request).status(), StatusCode::kInvalidArgument,
               "transport: there is no 3");
  v1::MeasureDistancesRequest measure;
  measure.set_transport(static_cast<v1::Transport>(3));
  ExpectStatus(Measure(measure).status(), StatusCode::kInvalidArgument, "transport: there is no 3");
}

TEST_F(AgentsServiceTest, AnAgentThatVanishesFailsItsPairsOnly) {
  const auto silent = [](const v1::PingPongTask&) { return std::nullopt; };
  // The first by name is the active side of all of its pairs.
  auto gone = std::make_unique<ScriptedAgent>(channel_, Host(0), silent);
  ScriptedAgent a(channel_, Host(1), Measured), b(channel_, Host(2), Measured);
  absl::StatusOr<v1::MeasureSummary> summary;
  std::thread measuring([&] { summary = Measure(); });
  Await([&] { return gone->tasks() > 0; });
  gone.reset();
  measuring.join();
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->pairs(), 1u);
  ASSERT_EQ(summary->failures_size(), 2);
  for (const std::string& failure : summary->failures()) {
    EXPECT_THAT(failure, HasSubstr(Host(0) + ": "));
  }
}

TEST_F(AgentsServiceTest, AnAgentsWordsReachWhoeverMeasures) {
  ScriptedAgent a(channel_, Host(0), [](const v1::PingPongTask& task) {
    v1::AgentMessage message;
    message.mutable_ping_pong()->set_id(task.id());
    message.mutable_ping_pong()->set_error("nobody answers at " + task.peer_address());
    return message;
  });
  ScriptedAgent b(channel_, Host(1), [](const v1::PingPongTask&) { return std::nullopt; });
  const auto summary = Measure();
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_THAT(summary->failures(),
              ElementsAre(absl::StrCat(Host(0), " and ", Host(1), ": ", Host(0),
                                       ": nobody answers at 10.0.0.1:18515")));
}

TEST_F(AgentsServiceTest, RefusesMeasurementsInWords) {
  v1::MeasureDistancesRequest request;
  ExpectStatus(Measure(request).status(), StatusCode::kFailedPrecondition, "coppice-agent");
  request.set_complete_up_to(5000);
  ExpectStatus(Measure(request).status(), StatusCode::kInvalidArgument, "complete_up_to: 5000");
  request.Clear();
  request.add_hosts("nowhere");
  ExpectStatus(Measure(request).status(), StatusCode::kNotFound, "nowhere");
}

TEST_F(AgentsServiceTest, ACancelledMeasurementFreesItsHosts) {
  const auto silent = [](const v1::PingPongTask&) { return std::nullopt; };
  ScriptedAgent a(channel_, Host(0), silent), b(channel_, Host(1), silent);
  grpc::ClientContext context;
  const auto stream = stub_->MeasureDistances(&context, v1::MeasureDistancesRequest());
  Await([&] { return a.tasks() > 0; });
  ExpectStatus(Measure().status(), StatusCode::kResourceExhausted, Host(0));
  context.TryCancel();
  EXPECT_EQ(Loopback::ToAbsl(stream->Finish()).code(), StatusCode::kCancelled);
  // What the timer does, which a loopback has not.
  v1::MeasureDistancesRequest bad;
  bad.add_hosts(Host(0));
  Await([&] { return loopback_.meter().Expire() == absl::InfiniteDuration(); });
  ExpectStatus(Measure(bad).status(), StatusCode::kFailedPrecondition, "coppice-agent");
}

TEST_F(AgentsServiceTest, ListsByPagesAndHosts) {
  for (const char* const host : {"b", "c", "d"}) {
    loopback_.distances().Put({{"a", host, 1, 0, 1, 0, 1, absl::UnixEpoch()}});
  }
  v1::ListDistancesRequest request;
  request.set_page_size(2);
  auto page = Distances(request);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->distances_size(), 2);
  request.set_page_token(page->next_page_token());
  page = Distances(request);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->distances_size(), 1);
  EXPECT_EQ(page->distances(0).to(), "d");
  EXPECT_EQ(page->next_page_token(), "");
  for (const char* const token : {"x", ":", "9:ab", "-1:ab"}) {
    request.set_page_token(token);
    ExpectStatus(Distances(request).status(), StatusCode::kInvalidArgument, "page_token");
  }
  request.Clear();
  request.set_page_size(-1);
  ExpectStatus(Distances(request).status(), StatusCode::kInvalidArgument, "page_size");
  request.Clear();
  request.add_hosts("nowhere");
  ExpectStatus(Distances(request).status(), StatusCode::kNotFound, "nowhere");
  request.Clear();
  request.set_estimate(true);
  ExpectStatus(Distances(request).status(), StatusCode::kInvalidArgument, "of 0 hosts");
  request.add_hosts(Host(0));
  request.add_hosts(Host(4));
  ExpectStatus(Distances(request).status(), StatusCode::kFailedPrecondition, Host(4));
}

// Otherwise two nodes would go on for as long as they were asked to.
TEST_F(AgentsServiceTest, ACancelStopsTheAgents) {
  AgentCall a(channel_), b(channel_);
  a.Say(Hello(Host(0)));
  b.Say(Hello(Host(1)));
  ASSERT_TRUE(a.Hear().has_value() && b.Hear().has_value());
  grpc::ClientContext context;
  Loopback::SetDeadline(context);
  const auto stream = stub_->MeasureDistances(&context, v1::MeasureDistancesRequest());
  const auto of_a = a.Hear(), of_b = b.Hear();
  ASSERT_TRUE(of_a.has_value() && of_a->has_ping_pong() && of_b.has_value());
  context.TryCancel();
  EXPECT_FALSE(stream->Finish().ok());
  std::thread timer([this] {
    while (loopback_.meter().Expire() < absl::InfiniteDuration()) std::this_thread::yield();
  });
  for (AgentCall* const agent : {&a, &b}) {
    const auto stop = agent->Hear();
    ASSERT_TRUE(stop.has_value() && stop->has_stop_ping_pong());
    EXPECT_EQ(stop->stop_ping_pong(), of_a->ping_pong().id());
  }
  timer.join();
  // What the agents say of it comes too late, which is no mistake.
  EXPECT_TRUE(a.Say(Result(of_a->ping_pong().id(), 1, 1)));
  EXPECT_EQ(loopback_.distances().size(), 0u);
}

TEST_F(AgentsServiceTest, AShutdownEndsAgentsAndMeasurements) {
  const auto silent = [](const v1::PingPongTask&) { return std::nullopt; };
  ScriptedAgent a(channel_, Host(0), silent), b(channel_, Host(1), silent);
  AgentCall other(channel_);
  other.Say(Hello(Host(2)));
  ASSERT_TRUE(other.Hear().has_value());
  absl::StatusOr<v1::MeasureSummary> summary;
  std::thread measuring([&] { summary = Measure(); });
  Await([&] { return a.tasks() + b.tasks() > 0; });
  loopback_.server().Shutdown(absl::Seconds(30));
  measuring.join();
  ExpectStatus(summary.status(), StatusCode::kUnavailable, "shutting down");
  ExpectStatus(other.End(), StatusCode::kUnavailable, "connect again");
}

// Nobody has a thread, and nobody waits for another.
TEST_F(AgentsServiceTest, HundredsOfAgentsMeasureAtOnce) {
  Loopback large({.fabric = "model:fat-tree(leaves=16,spines=2,hosts-per-leaf=16)"});
  const auto view = large.manager().fabric();
  const std::shared_ptr<grpc::Channel> channel = large.Connect();
  const std::unique_ptr<AgentsStub> stub = v1::Agents::NewStub(channel);
  std::vector<std::unique_ptr<ScriptedAgent>> agents;
  for (uint32_t i = 0; i < 256; ++i) {
    agents.push_back(std::make_unique<ScriptedAgent>(
        channel, std::string(view->snapshot->fabric->host_name(HostIndex(i))), Measured));
  }
  EXPECT_EQ(large.meter().connected(), 256u);
  grpc::ClientContext context;
  Loopback::SetDeadline(context);
  const auto stream = stub->MeasureDistances(&context, v1::MeasureDistancesRequest());
  v1::MeasureDistancesUpdate update;
  while (stream->Read(&update)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(update.summary().rounds(), 8u);  // four of each of two levels
  EXPECT_EQ(update.summary().failed(), 0u);
  EXPECT_EQ(update.summary().pairs(), large.distances().size());
  EXPECT_GT(update.summary().pairs(), 7 * 128u);
}

// --- In the name of a user ---

// The calls of one connection, with or without a name in the metadata.
class Caller {
 public:
  Caller(Loopback& loopback, uid_t uid)
      : channel_(ChannelOf(ConnectAs(uid, loopback.server().addresses()[0]))),
        jobs_(v1::Jobs::NewStub(channel_)),
        fabric_(v1::Fabric::NewStub(channel_)) {}

  absl::StatusOr<v1::Job> Register(const std::vector<std::string>& names) {
    v1::RegisterJobRequest request;
    request.set_all_endpoints(true);
    grpc::ClientContext context;
    Prepare(context, names);
    v1::Job job;
    const absl::Status status = Loopback::ToAbsl(jobs_->RegisterJob(&context, request, &job));
    if (!status.ok()) return status;
    return job;
  }
  absl::Status End(const std::string& job, const std::vector<std::string>& names) {
    v1::EndJobRequest request;
    request.set_id(job);
    grpc::ClientContext context;
    Prepare(context, names);
    v1::EndJobResponse response;
    return Loopback::ToAbsl(jobs_->EndJob(&context, request, &response));
  }
  absl::Status Sweep(const std::vector<std::string>& names) {
    grpc::ClientContext context;
    Prepare(context, names);
    v1::FabricSummary response;
    return Loopback::ToAbsl(fabric_->Sweep(&context, v1::SweepRequest(), &response));
  }
  absl::Status Read(const std::string& job, const std::vector<std::string>& names) {
    v1::GetJobRequest request;
    request.set_id(job);
    grpc::ClientContext context;
    Prepare(context, names);
    v1::Job response;
    return Loopback::ToAbsl(jobs_->GetJob(&context, request, &response));
  }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  static void Prepare(grpc::ClientContext& context, const std::vector<std::string>& names) {
    Loopback::SetDeadline(context);
    for (const std::string& name : names) context.AddMetadata("coppice-user", name);
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Jobs::Stub> jobs_;
  const std::unique_ptr<v1::Fabric::Stub> fabric_;
};

class InTheNameOfUsers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!MayActAsOthers()) GTEST_FAIL();
  }
  Loopback loopback_{{.server = {.listen = {}, .admin_group = "coppice-test"}}};
};

TEST_F(InTheNameOfUsers, AdministratorsCallWithTheUsersRights) {
  Caller root(loopback_, 0), bin(loopback_, kBinUser);
  const auto job = root.Register({"daemon"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->owner(), "daemon");
  EXPECT_EQ(root.Register({"1"})->owner(), "daemon");  // by uid
  EXPECT_EQ(root.Register({"54321"})->owner(), "54321");
  EXPECT_EQ(root.Register({"known-to-the-node"})->owner(), "known-to-the-node");
  EXPECT_EQ(root.Register({})->owner(), "root");
  // Not what is another's, and nothing that takes an administrator.
  ExpectStatus(root.End(job->id(), {"bin"}), StatusCode::kPermissionDenied, "belongs to daemon");
  ExpectStatus(root.Sweep({"bin"}), StatusCode::kPermissionDenied, "you are bin");
  EXPECT_TRUE(root.Read(job->id(), {"bin"}).ok());
  EXPECT_TRUE(root.End(job->id(), {"daemon"}).ok());
  EXPECT_TRUE(root.Sweep({"root"}).ok());  // is one by its own right
  EXPECT_TRUE(root.Sweep({"0"}).ok());
}

TEST_F(InTheNameOfUsers, NamesThatAreNoneChangeNothing) {
  Caller root(loopback_, 0);
  const std::vector<std::vector<std::string>> bad = {{""},
                                                     {"anonymous"},
                                                     {"unknown"},
                                                     {"tls:ada"},
                                                     {"two words"},
                                                     {"4294967295"},
                                                     {"99999999999"},
                                                     {std::string(300, 'x')},
                                                     {"daemon", "bin"}};
  for (const auto& names : bad) {
    ExpectStatus(root.Register(names).status(), StatusCode::kPermissionDenied, "coppice-user");
    ExpectStatus(root.Sweep(names), StatusCode::kPermissionDenied, "coppice-user");
  }
}

TEST_F(InTheNameOfUsers, OthersMayNotEvenAsThemselves) {
  Caller owner(loopback_, kDaemonUser);
  const auto job = owner.Register({});
  ASSERT_TRUE(job.ok()) << job.status();
  for (const char* const name : {"root", "bin", "daemon"}) {
    ExpectStatus(owner.Register({name}).status(), StatusCode::kPermissionDenied,
                 "only administrators call in the name of others");
    ExpectStatus(owner.End(job->id(), {name}), StatusCode::kPermissionDenied, "you are daemon");
    ExpectStatus(owner.Sweep({name}), StatusCode::kPermissionDenied, "coppice-user");
  }
  EXPECT_TRUE(owner.Read(job->id(), {"root"}).ok());  // which everybody may
  EXPECT_TRUE(owner.End(job->id(), {}).ok());
}

TEST_F(InTheNameOfUsers, AgentsAreWhoTheyAre) {
  Caller user(loopback_, kDaemonUser), root(loopback_, 0);
  const auto view = loopback_.manager().fabric();
  const std::string host(view->snapshot->fabric->host_name(HostIndex(0)));
  AgentCall as_user(user.channel()), as_root(user.channel(), "root");
  for (AgentCall* const call : {&as_user, &as_root}) {
    call->Say(Hello(host));
    ExpectStatus(call->End(), StatusCode::kPermissionDenied, "a node's agent");
  }
  AgentCall agent(root.channel(), "daemon");
  agent.Say(Hello(host));
  EXPECT_TRUE(agent.Hear().has_value());
}

}  // namespace
}  // namespace coppice::agents_service_test
