#include "daemon/rpc/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/numbers.h"
#include "daemon/rpc/listen/listeners.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/unit/rpc/loopback.h"

namespace coppice::server_test {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;

class TemporaryDirectory {
 public:
  TemporaryDirectory() { EXPECT_NE(mkdtemp(path_), nullptr); }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + ("/" + name); }

 private:
  char path_[32] = "/tmp/coppice-rpc-XXXXXX";
};

HealthCheckResponse::ServingStatus Check(Loopback& loopback, const std::string& service) {
  const auto stub = Health::NewStub(loopback.Connect());
  HealthCheckRequest request;
  request.set_service(service);
  const auto response = loopback.Call(*stub, &Health::Stub::Check, request);
  return response.ok() ? response->status() : HealthCheckResponse::SERVICE_UNKNOWN;
}

TEST(Server, ListensOnSeveralAddresses) {
  const TemporaryDirectory directory;
  const std::string socket = "unix:" + (directory / "daemon.sock");
  Loopback loopback({.server = {{.insecure_tcp = true}, {socket, "127.0.0.1:0"}}});
  ASSERT_EQ(loopback.server().addresses().size(), 2);
  EXPECT_EQ(loopback.server().addresses()[0], socket);
  EXPECT_THAT(loopback.server().addresses()[1], ::testing::Not(::testing::EndsWith(":0")));
  for (const size_t address : {0, 1}) {
    const auto stub = v1::Fabric::NewStub(loopback.Connect(address));
    const auto summary = loopback.Call(*stub, &v1::Fabric::Stub::GetFabric, v1::GetFabricRequest());
    EXPECT_TRUE(summary.ok()) << summary.status();
  }
}

TEST(Server, AnAddressHasSoManyConnectionsOverTcp) {
  RpcServerOptions server{{.insecure_tcp = true}, {"127.0.0.1:0"}};
  server.connections.tcp_of_address = 2;
  Loopback loopback({.server = server});
  int port = 0;
  const std::string& address = loopback.server().addresses()[0];
  ASSERT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  const auto connect_to = [port] {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    return fd;
  };
  // A server speaks first: its settings.
  const auto is_let_in = [](int fd) {
    char byte;
    return recv(fd, &byte, 1, 0) == 1;
  };
  const int first = connect_to(), second = connect_to(), third = connect_to();
  EXPECT_TRUE(is_let_in(first));
  EXPECT_TRUE(is_let_in(second));
  EXPECT_FALSE(is_let_in(third));
  close(first);
  bool is_in = false;
  for (int i = 0; i < 10'000 && !is_in; ++i) {
    const int again = connect_to();
    is_in = is_let_in(again);
    close(again);
  }
  EXPECT_TRUE(is_in);
  close(second);
  close(third);
}

TEST(Server, IsServingOnceAFabricIsKnown) {
  Loopback known;
  const auto stub = Health::NewStub(known.Connect());
  grpc::ClientContext context;
  Loopback::SetDeadline(context);
  const auto watch = stub->Watch(&context, HealthCheckRequest());
  HealthCheckResponse response;
  while (watch->Read(&response) && response.status() != HealthCheckResponse::SERVING) {
  }
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  for (const char* service : {"", "coppice.v1.Jobs", "coppice.v1.Trees", "coppice.v1.Fabric"}) {
    EXPECT_EQ(Check(known, service), HealthCheckResponse::SERVING) << service;
  }
  EXPECT_EQ(Check(known, "coppice.v1.Else"), HealthCheckResponse::SERVICE_UNKNOWN);
  Loopback unknown({.fabric = "file:/nonexistent/net"});
  for (const char* service : {"", "coppice.v1.Jobs", "coppice.v1.Trees", "coppice.v1.Fabric"}) {
    EXPECT_EQ(Check(unknown, service), HealthCheckResponse::NOT_SERVING) << service;
  }
}

TEST(Server, RefusesARequestOverItsLimit) {
  Loopback::Options options;
  options.server.max_request_bytes = 10'000;
  Loopback loopback(options);
  v1::RegisterJobRequest request;
  request.set_display_name(std::string(20'000, 'x'));
  request.set_all_endpoints(true);
  const absl::Status status =
      loopback.Call(loopback.jobs(), &v1::Jobs::Stub::RegisterJob, request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("10000"));
  EXPECT_NE(loopback.RegisterAll(), "");  // and goes on
}

TEST(Server, KeepsToTheDeadlineOfACall) {
  Loopback loopback;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() - std::chrono::seconds(1));
  v1::FabricSummary summary;
  EXPECT_EQ(loopback.fabric().GetFabric(&context, v1::GetFabricRequest(), &summary).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST(Server, StopsListeningWhenShutDown) {
  const TemporaryDirectory directory;
  Loopback loopback({.server = {{}, {"unix:" + (directory / "daemon.sock")}}});
  loopback.RegisterAll();
  loopback.server().Shutdown(absl::Seconds(5));
  loopback.server().Shutdown(absl::Seconds(5));
  EXPECT_EQ(loopback.Call(loopback.fabric(), &v1::Fabric::Stub::GetFabric, v1::GetFabricRequest())
                .status()
                .code(),
            absl::StatusCode::kUnavailable);
}

TEST(Server, RefusesALivingSocketAndABoundPort) {
  const TemporaryDirectory directory;
  const std::string socket = "unix:" + (directory / "daemon.sock");
  Loopback first({.server = {{.insecure_tcp = true}, {socket, "127.0.0.1:0"}}});
  RpcServerOptions options;
  options.listen = {socket};
  const auto second = RpcServer::Start(first.parts(), options);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists) << second.status();
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(directory / "daemon.sock"));
  options.listen = {first.server().addresses()[1]};
  options.insecure_tcp = true;
  const auto third = RpcServer::Start(first.parts(), options);
  EXPECT_EQ(third.status().code(), absl::StatusCode::kUnavailable) << third.status();
  EXPECT_NE(first.RegisterAll(), "");
}

TEST(ListenAddress, ReplacesOnlyTheSocketOfTheDead) {
  const TemporaryDirectory directory;
  const std::string stale = directory / "stale.sock";
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, stale.c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(fd);  // leaves the file, as kill -9 does
  EXPECT_TRUE(PrepareListenAddress("unix:" + stale).ok());
  EXPECT_FALSE(std::filesystem::exists(stale));

  std::ofstream(directory / "notes.txt") << "mine";
  EXPECT_EQ(PrepareListenAddress("unix:" + (directory / "notes.txt")).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(std::filesystem::exists(directory / "notes.txt"));
  const absl::Status missing = PrepareListenAddress("unix:" + (directory / "none/x.sock"));
  EXPECT_EQ(missing.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("none"));
}

TEST(ListenAddress, TellsWhatIsWrong) {
  for (const char* good : {"unix:/run/x.sock", "unix:x.sock", "unix:///run/x", "localhost:0",
                           "[::1]:50051", "0.0.0.0:65535"}) {
    EXPECT_TRUE(CheckListenAddress(good).ok()) << good;
  }
  for (const std::string& bad :
       {std::string("unix:"), std::string("unix://x"), std::string("host"), std::string(":1"),
        std::string("host:"), std::string("host:65536"), std::string("host:-1"), std::string(""),
        "unix:/" + std::string(108, 'x')}) {
    EXPECT_EQ(CheckListenAddress(bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace coppice::server_test
