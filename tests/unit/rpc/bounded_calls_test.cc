// The bounds in front of every method, over a real server: what is refused, what is not even read,
// and that everything is given back.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "coppice/v1/placements.grpc.pb.h"
#include "daemon/rpc/calls/access_table.h"
#include "daemon/rpc/service.h"
#include "google/rpc/error_details.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "proto/status_conversion.h"
#include "tests/unit/rpc/loopback.h"

namespace coppice::bounded_calls_test {
namespace {

using ::testing::HasSubstr;

constexpr int kMaxRounds = 10'000;  // until the server knows what the client has done
constexpr int kRanks = 20'000;      // so many that a client's window does not hold the answer

// Calls in the name of a user who is no administrator.
std::unique_ptr<grpc::ClientContext> As(const std::string& user) {
  auto context = std::make_unique<grpc::ClientContext>();
  Loopback::SetDeadline(*context);
  context->AddMetadata("coppice-user", user);
  return context;
}

Loopback::Options With(const CallerBounds& caller, int64_t request_memory = 16 << 20) {
  Loopback::Options options;
  options.server.admission.caller = caller;
  options.server.admission.request_memory = request_memory;
  return options;
}

class BoundedCallsTest : public ::testing::Test {
 protected:
  void Begin(const Loopback::Options& options) { loopback_ = std::make_unique<Loopback>(options); }

  absl::Status GetFabric(const std::string& user) {
    v1::FabricSummary summary;
    return FromGrpcStatus(loopback_->fabric().GetFabric(As(user).get(), {}, &summary));
  }
  absl::Status GetJob(const std::string& user, const std::string& id) {
    v1::GetJobRequest request;
    request.set_id(id);
    v1::Job job;
    return FromGrpcStatus(loopback_->jobs().GetJob(As(user).get(), request, &job));
  }
  // With an answer of some 200 KB.
  std::string RegisterLargeJob() {
    v1::RegisterJobRequest request;
    const auto fabric =
        loopback_->Call(loopback_->fabric(), &v1::Fabric::Stub::ListNodes, v1::ListNodesRequest());
    EXPECT_TRUE(fabric.ok()) << fabric.status();
    for (int i = 0; i < kRanks; ++i) request.add_endpoints(fabric->nodes(i % 16).host());
    const auto job = loopback_->Call(loopback_->jobs(), &v1::Jobs::Stub::RegisterJob, request);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->id() : "";
  }
  // A connection of its own, whose windows do not grow with what was received before.
  std::shared_ptr<grpc::Channel> NarrowChannel() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    return grpc::CreateCustomChannel(loopback_->server().addresses()[0],
                                     grpc::InsecureChannelCredentials(), arguments);
  }
  // Of the bytes as they are.
  absl::Status Send(const std::string& method, const std::string& wire) {
    const auto context = As("mallory");
    grpc::Slice slice(wire);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::Status status;
    absl::Notification done;
    grpc::GenericStub(loopback_->Connect())
        .UnaryCall(context.get(), method, {}, &request, &response, [&](grpc::Status s) {
          status = std::move(s);
          done.Notify();
        });
    done.WaitForNotification();
    return FromGrpcStatus(status);
  }

  std::unique_ptr<Loopback> loopback_;
};

// A call for a job whose answer nobody reads.
class UnreadCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  UnreadCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& user,
             const std::string& job)
      : context_(As(user)), stub_(channel) {
    v1::GetJobRequest request;
    request.set_id(job);
    grpc::Slice slice(request.SerializeAsString());
    request_ = grpc::ByteBuffer(&slice, 1);
    stub_.PrepareBidiStreamingCall(context_.get(), "/coppice.v1.Jobs/GetJob", {}, this);
    StartWriteLast(&request_, {});
    StartCall();
  }
  ~UnreadCall() override {
    context_->TryCancel();
    done_.WaitForNotification();
  }
  void AwaitAnswer() { answered_.WaitForNotification(); }
  void OnReadInitialMetadataDone(bool) override { answered_.Notify(); }
  void OnDone(const grpc::Status&) override { done_.Notify(); }

 private:
  const std::unique_ptr<grpc::ClientContext> context_;
  grpc::GenericStub stub_;
  grpc::ByteBuffer request_;
  absl::Notification answered_, done_;
};

TEST_F(BoundedCallsTest, ACallerHasSoManyStreamsAndOthersHaveTheirOwn) {
  Begin(With({.streams = 1}));
  const auto first = As("mallory"), second = As("mallory"), other = As("alice");
  v1::TreeChange change;
  const auto one = loopback_->trees().WatchTrees(first.get(), {});
  ASSERT_TRUE(one->Read(&change));
  const auto two = loopback_->trees().WatchTrees(second.get(), {});
  EXPECT_FALSE(two->Read(&change));
  const absl::Status refused = FromGrpcStatus(two->Finish());
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("mallory has 1 streams open"));
  EXPECT_TRUE(GetDetail<google::rpc::RetryInfo>(refused).has_value());
  const auto three = loopback_->trees().WatchTrees(other.get(), {});
  EXPECT_TRUE(three->Read(&change));
  first->TryCancel();
  other->TryCancel();
  absl::Status again = refused;
  for (int i = 0; i < kMaxRounds && !again.ok(); ++i) {
    const auto context = As("mallory");
    const auto stream = loopback_->trees().WatchTrees(context.get(), {});
    if (stream->Read(&change)) again = absl::OkStatus();
    context->TryCancel();
    (void)stream->Finish();
  }
  EXPECT_TRUE(again.ok());
}

TEST_F(BoundedCallsTest, AHugeCountIsRefusedBeforeAnythingIsBuilt) {
  Begin(With({}));
  std::string wire;
  for (int i = 0; i < 2'000'000; ++i) wire += std::string("\x0a\x00", 2);
  for (const char* method : {"AdvisePlacement", "BatchCreatePlacements"}) {
    const absl::Status status = Send(absl::StrCat("/coppice.v1.Placements/", method), wire);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("takes more memory than any may"));
  }
  // Few enough for memory, too many for planning: refused before they are converted.
  wire.resize(2 * 1001);
  const absl::Status status = Send("/coppice.v1.Placements/AdvisePlacement", wire);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("at most 1000 at once"));
  EXPECT_TRUE(GetFabric("mallory").ok());
}

TEST_F(BoundedCallsTest, ARequestIsAsLargeAsItsMethodNeeds) {
  Begin(With({}));
  v1::GetJobRequest request;
  request.set_id(std::string(2 << 20, '1'));
  const absl::Status status = Send("/coppice.v1.Jobs/GetJob", request.SerializeAsString());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the most is 1048576 bytes"));
}

TEST_F(BoundedCallsTest, WhatIsNoRequestIsAnInvalidArgument) {
  Begin(With({}));
  const std::pair<const char*, const char*> kWiresAndWords[] = {
      {"\x0a", "GetJobRequest"}, {"\x0a\x02\xff\xfe", "id: is no UTF-8"}};
  for (const auto& [wire, words] : kWiresAndWords) {
    const absl::Status status = Send("/coppice.v1.Jobs/GetJob", wire);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }
}

TEST_F(BoundedCallsTest, AMessageOfAStreamIsBoundedBeforeItIsRead) {
  Begin(With({}));
  const auto context = As("mallory");
  const auto stream = loopback_->jobs().KeepAlive(context.get());
  v1::KeepAliveRequest request;
  // Fields that nobody knows, of two bytes here and sixteen there.
  for (int i = 0; i < 40'000; ++i) {
    request.GetReflection()->MutableUnknownFields(&request)->AddVarint(15, 1);
  }
  (void)stream->Write(request);
  v1::KeepAliveResponse response;
  EXPECT_FALSE(stream->Read(&response));
  const absl::Status status = FromGrpcStatus(stream->Finish());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("KeepAliveRequest: this message has 80000"));
}

// Begins a call and sends no request.
class SilentCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  SilentCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& user)
      : context_(As(user)), stub_(channel) {
    stub_.PrepareBidiStreamingCall(context_.get(), "/coppice.v1.Jobs/GetJob", {}, this);
    StartRead(&answer_);
    StartCall();
  }
  absl::Status Await() {
    done_.WaitForNotification();
    return status_;
  }
  void OnDone(const grpc::Status& status) override {
    status_ = FromGrpcStatus(status);
    done_.Notify();
  }

 private:
  const std::unique_ptr<grpc::ClientContext> context_;
  grpc::GenericStub stub_;
  grpc::ByteBuffer answer_;
  absl::Status status_;
  absl::Notification done_;
};

TEST_F(BoundedCallsTest, WhoSendsNoRequestIsToldSo) {
  Loopback::Options options = With({});
  options.server.admission.longest_reading = absl::Milliseconds(50);
  Begin(options);
  SilentCall call(loopback_->Connect(), "mallory");
  const absl::Status status = call.Await();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("had not come after 50ms"));
}

TEST_F(BoundedCallsTest, WhatWasChangedIsToldWhoeverReadsNothing) {
  Begin(With({.answer_memory = 300'000}));
  const std::string job = RegisterLargeJob();
  UnreadCall unread(NarrowChannel(), "mallory", job);
  unread.AwaitAnswer();
  v1::RegisterJobRequest request;
  request.set_all_endpoints(true);
  v1::Job registered;
  // Nothing is changed by who has left too much unread.
  absl::Status status =
      FromGrpcStatus(loopback_->jobs().RegisterJob(As("mallory").get(), request, &registered));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  v1::ListJobsResponse jobs;
  EXPECT_TRUE(loopback_->jobs().ListJobs(As("alice").get(), {}, &jobs).ok());
  EXPECT_EQ(jobs.jobs_size(), 1);
  // Who has not is told, though it is more than there is room for.
  for (int i = 0; i < kRanks; ++i) request.add_endpoints("n" + std::to_string(i % 16));
  request.clear_all_endpoints();
  const auto nodes =
      loopback_->Call(loopback_->fabric(), &v1::Fabric::Stub::ListNodes, v1::ListNodesRequest());
  for (int i = 0; i < kRanks; ++i) request.set_endpoints(i, nodes->nodes(i % 16).host());
  status = FromGrpcStatus(loopback_->jobs().RegisterJob(As("alice").get(), request, &registered));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(registered.endpoints_size(), kRanks);
}

TEST_F(BoundedCallsTest, HealthIsBoundedAsAllElseIs) {
  Begin(With({.streams = 1}));
  const auto stub = grpc::health::v1::Health::NewStub(loopback_->Connect());
  const auto first = As("mallory"), second = As("mallory");
  grpc::health::v1::HealthCheckResponse response;
  const auto one = stub->Watch(first.get(), {});
  ASSERT_TRUE(one->Read(&response));
  const auto two = stub->Watch(second.get(), {});
  EXPECT_FALSE(two->Read(&response));
  EXPECT_EQ(two->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(stub->Check(As("mallory").get(), {}, &response).ok());
}

TEST_F(BoundedCallsTest, WhoDoesNotReadIsAnsweredNoMore) {
  Begin(With({.answer_memory = 1'000'000}));  // one such answer, as it is counted, and not two
  const std::string job = RegisterLargeJob();
  ASSERT_NE(job, "");
  {
    UnreadCall unread(NarrowChannel(), "mallory", job);
    unread.AwaitAnswer();
    const absl::Status refused = GetJob("mallory", job);
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("others of mallory have answers that are not read yet"));
    EXPECT_TRUE(GetJob("alice", job).ok());
  }
  absl::Status again = absl::UnknownError("");
  for (int i = 0; i < kMaxRounds && !again.ok(); ++i) again = GetJob("mallory", job);
  EXPECT_TRUE(again.ok()) << again;
}

TEST_F(BoundedCallsTest, ACallThatIsCancelledWhileItWaitsGivesItsPlaceBack) {
  Begin(With({.calls = 1}));
  const std::string job = RegisterLargeJob();
  {
    UnreadCall unread(NarrowChannel(), "mallory", job);  // has the only place
    unread.AwaitAnswer();
    const auto waiting = As("mallory");
    const v1::GetFabricRequest request;
    v1::FabricSummary summary;
    absl::Notification done;
    loopback_->fabric().async()->GetFabric(waiting.get(), &request, &summary,
                                           [&](const grpc::Status&) { done.Notify(); });
    EXPECT_TRUE(GetFabric("alice").ok());
    waiting->TryCancel();
    done.WaitForNotification();
  }
  EXPECT_TRUE(GetFabric("mallory").ok());
}

TEST_F(BoundedCallsTest, ShutsDownWithCallsThatWait) {
  Begin(With({.calls = 1, .calls_per_second = 1}));
  const std::string job = RegisterLargeJob();
  UnreadCall unread(NarrowChannel(), "mallory", job);
  unread.AwaitAnswer();
  UnreadCall waiting(NarrowChannel(), "mallory", job);
  EXPECT_TRUE(GetFabric("alice").ok());
  loopback_->server().Shutdown(absl::ZeroDuration());
}

// The services, for what their tables say.
class MethodTables final {
 public:
  explicit MethodTables(const ServedParts& served)
      : peers_(options_, /*are_own=*/false, &served.manager->deeds(), &shown_) {
    const ServiceParts parts{served, &options_, &peers_, &statistics_, &pools_};
    for (auto* const make : {MakeJobsService, MakeTreesService, MakeFabricService,
                             MakeMappingService, MakePlacementsService, MakeAgentsService,
                             MakeSwitchesService, MakeAdminService, MakeReflectionService}) {
      services_.push_back(make(parts));
    }
    services_.push_back(MakeHealthService(parts));
  }
  const std::vector<std::unique_ptr<Service>>& All() const { return services_; }

 private:
  const RpcServerOptions options_;
  ShownCertificates shown_;
  Peers peers_;
  MethodStatistics statistics_;
  WorkerPools pools_{options_};
  std::vector<std::unique_ptr<Service>> services_;
};

TEST(MethodBounds, KnowTheAnswerOfEveryUnaryMethod) {
  Loopback loopback;
  const MethodTables tables(loopback.parts());
  const auto* const pool = google::protobuf::DescriptorPool::generated_pool();
  for (const auto& table : tables.All()) {
    const auto* const service = pool->FindServiceByName(table->name());
    ASSERT_NE(service, nullptr) << table->name();
    for (int i = 0; i < service->method_count(); ++i) {
      const auto& method = *service->method(i);
      const bool is_unary = !method.client_streaming() && !method.server_streaming();
      const bool is_told = absl::c_any_of(table->methods(), [&](const Service::Method& m) {
        return m.name == method.name() && (m.answer_of != nullptr) == is_unary;
      });
      EXPECT_TRUE(is_told) << table->name() << "." << method.name();
    }
    for (const Service::Method& method : table->methods()) {
      EXPECT_NE(service->FindMethodByName(method.name), nullptr) << method.name;
    }
  }
}

TEST(MethodBounds, KnowWhatChangesSomething) {
  // Of what is not for everybody: these only read.
  const std::set<std::string> kReading = {
      "MapRanks",   "EvaluateMapping", "GetMappingProblem", "AdviseTree", "AdvisePlacement",
      "ListQuotas", "ListDeeds",       "KeepAlive",         "Connect",    "ServerReflectionInfo"};
  std::set<std::string> expected, found;
  for (const MethodAccess& access : AccessTable()) {
    const std::string name(access.method.substr(access.method.rfind('/') + 1));
    if (access.least != Role::kReader && !kReading.contains(name)) expected.insert(name);
  }
  Loopback loopback;
  const MethodTables tables(loopback.parts());
  for (const auto& table : tables.All()) {
    for (const Service::Method& method : table->methods()) {
      if (method.traits.is_change) found.insert(method.name);
    }
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace coppice::bounded_calls_test
