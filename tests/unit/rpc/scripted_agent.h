// A node's agent as a test plays it: over a real stream, with answers that the test thinks of.
#ifndef COPPICE_TESTS_UNIT_RPC_SCRIPTED_AGENT_H_
#define COPPICE_TESTS_UNIT_RPC_SCRIPTED_AGENT_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "coppice/v1/agents.grpc.pb.h"
#include "proto/status_conversion.h"

namespace coppice {

inline v1::AgentMessage Hello(const std::string& host) {
  v1::AgentMessage message;
  message.mutable_hello()->set_host(host);
  message.mutable_hello()->set_cores(8);
  message.mutable_hello()->set_version("test");
  message.mutable_hello()->set_measure_address("10.0.0.1:18515");
  return message;
}

inline v1::AgentMessage Result(uint64_t id, double latency_us, double bandwidth_gbps) {
  v1::AgentMessage message;
  v1::PingPongResult& result = *message.mutable_ping_pong();
  result.set_id(id);
  result.set_latency_us(latency_us);
  result.set_latency_spread_us(latency_us / 10);
  result.set_bandwidth_gbps(bandwidth_gbps);
  result.set_bandwidth_spread_gbps(bandwidth_gbps / 10);
  result.set_samples(90);
  return message;
}

// One stream, step by step.
class AgentCall final {
 public:
  explicit AgentCall(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::Agents::NewStub(channel)), stream_(stub_->Connect(&context_)) {}
  AgentCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& user)
      : stub_(v1::Agents::NewStub(channel)) {
    context_.AddMetadata("coppice-user", user);
    stream_ = stub_->Connect(&context_);
  }

  // False: the stream is over.
  bool Say(const v1::AgentMessage& message) { return stream_->Write(message); }
  // None: the stream is over.
  std::optional<v1::AgentTask> Hear() {
    v1::AgentTask task;
    if (!stream_->Read(&task)) return std::nullopt;
    return task;
  }
  void SayNoMore() { stream_->WritesDone(); }
  void Vanish() { context_.TryCancel(); }
  // Reads what is left, then waits for the end.
  absl::Status End() {
    while (Hear().has_value()) {
    }
    return FromGrpcStatus(stream_->Finish());
  }

 private:
  grpc::ClientContext context_;
  const std::unique_ptr<v1::Agents::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::AgentTask>> stream_;
};

// Connects, and answers the active side of each of its pairs until it is destroyed.
class ScriptedAgent final {
 public:
  // What the active side says of a task; none: nothing.
  using Answer = std::function<std::optional<v1::AgentMessage>(const v1::PingPongTask&)>;

  ScriptedAgent(const std::shared_ptr<grpc::Channel>& channel, const std::string& host,
                Answer answer)
      : call_(channel), answer_(std::move(answer)) {
    call_.Say(Hello(host));
    const std::optional<v1::AgentTask> welcome = call_.Hear();
    EXPECT_TRUE(welcome.has_value() && welcome->has_welcome()) << host;
    thread_ = std::thread([this] { Run(); });
  }
  ~ScriptedAgent() {
    call_.Vanish();
    thread_.join();
  }

  int tasks() const { return tasks_; }

 private:
  void Run() {
    while (const std::optional<v1::AgentTask> task = call_.Hear()) {
      ++tasks_;
      const std::optional<v1::AgentMessage> message = answer_(task->ping_pong());
      if (message.has_value()) call_.Say(*message);
    }
  }

  AgentCall call_;
  const Answer answer_;
  std::atomic<int> tasks_ = 0;
  std::thread thread_;
};

}  // namespace coppice

#endif  // COPPICE_TESTS_UNIT_RPC_SCRIPTED_AGENT_H_
