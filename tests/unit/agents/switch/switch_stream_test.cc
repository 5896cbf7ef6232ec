// The switch's stream against a daemon's service on a real loopback server: hello, reconciliation,
// installs and their results, reports, and that it comes back.
#include "agents/switch/switch_stream.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "tests/unit/agents/switch/loopback_tree.h"

namespace coppice::switch_stream_test {
namespace {

// What a daemon would say is scripted; what it heard is kept. The handler's thread is gRPC's.
class ScriptedDaemon final : public v1::Switches::Service {
 public:
  grpc::Status Connect(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::SwitchTask, v1::SwitchMessage>* stream) override {
    {
      const std::lock_guard<std::mutex> lock(mu_);
      ++streams_;
      stream_ = stream;
      context_ = context;
    }
    v1::SwitchMessage message;
    while (stream->Read(&message)) {
      const std::lock_guard<std::mutex> lock(mu_);
      heard_.push_back(message);
    }
    const std::lock_guard<std::mutex> lock(mu_);
    stream_ = nullptr;
    context_ = nullptr;
    return end_;
  }

  void Tell(const v1::SwitchTask& task) {
    const std::lock_guard<std::mutex> lock(mu_);
    ASSERT_NE(stream_, nullptr);
    stream_->Write(task);
  }
  void Cut() {
    const std::lock_guard<std::mutex> lock(mu_);
    if (context_ != nullptr) context_->TryCancel();
  }
  int streams() {
    const std::lock_guard<std::mutex> lock(mu_);
    return streams_;
  }
  std::vector<v1::SwitchMessage> heard() {
    const std::lock_guard<std::mutex> lock(mu_);
    return heard_;
  }

 private:
  std::mutex mu_;
  grpc::Status end_;
  int streams_ = 0;
  grpc::ServerReaderWriter<v1::SwitchTask, v1::SwitchMessage>* stream_ = nullptr;
  grpc::ServerContext* context_ = nullptr;
  std::vector<v1::SwitchMessage> heard_;
};

struct Loopback {
  ScriptedDaemon daemon;
  std::unique_ptr<grpc::Server> grpc;
  std::string address;
  asio::io_context io;
  std::unique_ptr<SwitchServer> server;
  std::unique_ptr<SwitchStream> stream;

  Loopback() {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&daemon);
    grpc = builder.BuildAndStart();
    address = absl::StrCat("127.0.0.1:", port);
    SwitchServer::Options options;
    options.limits.entries = 2;
    server = LoopbackSwitch(io, options);
  }
  ~Loopback() {
    stream.reset();
    grpc->Shutdown(std::chrono::system_clock::now());
  }
  void Begin(std::chrono::milliseconds report_every = std::chrono::hours(1)) {
    SwitchStream::Options options{"00000000000000a1", "10.0.0.7:18516", "1.2", address};
    options.report_every = report_every;
    stream = std::make_unique<SwitchStream>(
        &io, server.get(), grpc::CreateChannel(address, grpc::InsecureChannelCredentials()),
        options);
    stream->Begin();
  }
  // The messages heard so far, once there are so many.
  std::vector<v1::SwitchMessage> Heard(size_t count) {
    EXPECT_TRUE(RunUntil(io, [&] { return daemon.heard().size() >= count; }));
    return daemon.heard();
  }
  void Welcome(const std::vector<Group>& keep) {
    v1::SwitchTask task;
    task.mutable_welcome()->set_switch_name("leaf-1");
    for (const Group& group : keep) {
      task.mutable_welcome()->add_keep()->set_tree(group.tree);
      task.mutable_welcome()->mutable_keep()->rbegin()->set_revision(group.revision);
    }
    daemon.Tell(task);
    EXPECT_TRUE(RunUntil(io, [&] { return stream->is_welcome(); }));
  }
  void Install(uint64_t id, const EntrySpec& spec) {
    v1::SwitchTask task;
    task.mutable_install()->set_id(id);
    *task.mutable_install()->mutable_entry() = ToProto(spec);
    daemon.Tell(task);
  }
};

TEST(SwitchStream, SaysWhereItStandsAndWhatItCanDo) {
  Loopback loopback;
  ASSERT_TRUE(loopback.server->Install(LoopbackEntry({5, 2}, 2)).ok());
  loopback.Begin();
  const v1::SwitchHello hello = loopback.Heard(1).front().hello();
  EXPECT_EQ(hello.switch_guid(), "00000000000000a1");
  EXPECT_EQ(hello.address(), "10.0.0.7:18516");
  EXPECT_EQ(hello.version(), "1.2");
  EXPECT_EQ(hello.abilities().entries(), 2);
  EXPECT_EQ(hello.abilities().operations_size(), v1::ReductionOperation_MAX);
  EXPECT_EQ(hello.abilities().types_size(), v1::ElementType_MAX);
  ASSERT_EQ(hello.groups_size(), 1);
  EXPECT_EQ(hello.groups(0).tree(), 5);
  EXPECT_EQ(hello.groups(0).revision(), 2);
}

TEST(SwitchStream, TheNumbersOfTheProtoAreThoseOfFrames) {
  EXPECT_EQ(static_cast<int>(ReductionOperation::kTake), v1::REDUCTION_OPERATION_TAKE);
  EXPECT_EQ(static_cast<int>(ReductionOperation::kLogicalXor), v1::REDUCTION_OPERATION_LOGICAL_XOR);
  EXPECT_EQ(static_cast<int>(ReductionOperation::kBitwiseAnd), v1::REDUCTION_OPERATION_BITWISE_AND);
  EXPECT_EQ(static_cast<int>(ElementType::kBytes), v1::ELEMENT_TYPE_BYTES);
  EXPECT_EQ(static_cast<int>(ElementType::kUint8), v1::ELEMENT_TYPE_UINT8);
  EXPECT_EQ(static_cast<int>(ElementType::kFloat), v1::ELEMENT_TYPE_FLOAT);
  EXPECT_EQ(static_cast<int>(ElementType::kBfloat16), v1::ELEMENT_TYPE_BFLOAT16);
  EXPECT_EQ(kLastOperation, v1::ReductionOperation_MAX);
  EXPECT_EQ(kLastElementType, v1::ElementType_MAX);
}

TEST(SwitchStream, InstallsRemovesAndSaysWhyNot) {
  Loopback loopback;
  loopback.Begin();
  loopback.Heard(1);
  loopback.Welcome({});
  loopback.Heard(2);  // with the first report
  EntrySpec below = LoopbackEntry({1, 1}, 2);
  below.parent = EntryParent{"127.0.0.1:1", "00000000000000b2", 3};
  loopback.Install(7, below);
  loopback.Install(8, LoopbackEntry({2, 1}, 2));
  loopback.Install(9, LoopbackEntry({3, 1}, 2));
  const auto heard = loopback.Heard(5);
  EXPECT_EQ(heard[2].installed().id(), 7);
  EXPECT_EQ(heard[2].installed().error(), "");
  EXPECT_EQ(heard[3].installed().error(), "");
  EXPECT_EQ(heard[4].installed().id(), 9);
  EXPECT_THAT(heard[4].installed().error(), testing::HasSubstr("--entries"));
  EXPECT_EQ(loopback.server->table().Find(1)->spec(), below);
  v1::SwitchTask remove;
  remove.mutable_remove()->set_tree(1);
  remove.mutable_remove()->set_revision(1);
  loopback.daemon.Tell(remove);
  EXPECT_TRUE(RunUntil(loopback.io, [&] { return loopback.server->table().size() == 1; }));
  v1::SwitchTask bad;
  bad.mutable_install()->set_id(10);
  bad.mutable_install()->mutable_entry()->set_key("short");
  loopback.daemon.Tell(bad);
  EXPECT_THAT(loopback.Heard(6)[5].installed().error(), testing::HasSubstr("key"));
}

TEST(SwitchStream, AfterARestartOfTheDaemonWhatItDoesNotKnowGoes) {
  Loopback loopback;
  loopback.Begin();
  loopback.Heard(1);
  loopback.Welcome({});
  loopback.Install(1, LoopbackEntry({1, 1}, 2));
  loopback.Install(2, LoopbackEntry({2, 4}, 2));
  loopback.Heard(4);
  loopback.daemon.Cut();
  ASSERT_TRUE(RunUntil(loopback.io, [&] { return loopback.daemon.streams() == 2; }));
  EXPECT_EQ(loopback.server->table().size(), 2);  // works on meanwhile
  EXPECT_EQ(loopback.Heard(5)[4].hello().groups_size(), 2);
  loopback.Welcome({{2, 4}, {1, 2}});
  EXPECT_THAT(loopback.server->table().Groups(), testing::ElementsAre(Group{2, 4}));
}

TEST(SwitchStream, TellsAtOnceWhatBrokeAndAgainToTheNextDaemon) {
  Loopback loopback;
  const EntrySpec spec = LoopbackEntry({5, 2}, 2);
  ASSERT_TRUE(loopback.server->Install(spec).ok());
  loopback.Begin();
  loopback.Heard(1);
  loopback.Welcome({{5, 2}});
  EXPECT_EQ(loopback.Heard(2)[1].report().broken_size(), 0);
  LoopbackMember member(loopback.io, loopback.server->port(), {5, 2}, 0, spec.key);
  member.Contribute(1, 3, Int64s({1}));
  const v1::SwitchReport report = loopback.Heard(3)[2].report();
  ASSERT_EQ(report.broken_size(), 1);
  EXPECT_EQ(report.broken(0).tree(), 5);
  EXPECT_EQ(report.entries_used(), 1);
  EXPECT_EQ(report.memory_used_bytes(), spec.MemoryBytes());
  EXPECT_EQ(report.counters().broken(), 1);
  EXPECT_EQ(report.counters().refusals().at("out of turn"), 1);
  loopback.daemon.Cut();
  loopback.Heard(4);
  loopback.Welcome({{5, 2}});
  EXPECT_EQ(loopback.Heard(5)[4].report().broken_size(), 1);
}

TEST(SwitchStream, ReportsAgainAndAgain) {
  Loopback loopback;
  loopback.Begin(std::chrono::milliseconds(5));
  loopback.Heard(1);
  loopback.Welcome({});
  for (const v1::SwitchMessage& message : loopback.Heard(6)) {
    EXPECT_TRUE(message.has_hello() || message.has_report());
  }
}

}  // namespace
}  // namespace coppice::switch_stream_test
