// A name server that does not answer holds up neither a measurement nor the agent's stop.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <mutex>

#include "agents/node/measurer.h"
#include "agents/node/measuring_socket.h"
#include "agents/node/ping_pong.h"

namespace coppice {
namespace {

using ::testing::HasSubstr;

constexpr char kHangs[] = "hangs.test";

// The server that is asked for kHangs: answers, with nothing, when it is let.
class NameServer final {
 public:
  static NameServer& Get() {
    static NameServer& server = *new NameServer;
    return server;
  }

  void Ask() {
    std::unique_lock<std::mutex> lock(mu_);
    ++asked_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return answers_; });
    --asked_;
    changed_.notify_all();
  }
  // Until so many wait for an answer.
  void AwaitAsked(int count) {
    std::unique_lock<std::mutex> lock(mu_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::minutes(1), [&] { return asked_ == count; }));
  }
  void SetAnswers(bool answers) {
    const std::lock_guard<std::mutex> lock(mu_);
    answers_ = answers;
    changed_.notify_all();
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  bool answers_ = false;
  int asked_ = 0;
};

}  // namespace
}  // namespace coppice

// In the place of the C library's, which is asked for everything else.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  const bool is_number = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
  if (node != nullptr && std::strcmp(node, coppice::kHangs) == 0 && !is_number) {
    coppice::NameServer::Get().Ask();
    return EAI_AGAIN;
  }
  using LookUp = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto libc = reinterpret_cast<LookUp>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return libc(node, service, hints, found);
}

namespace coppice {
namespace {

class NameResolutionTest : public ::testing::Test {
 protected:
  NameResolutionTest() { NameServer::Get().SetAnswers(false); }
  ~NameResolutionTest() override {
    NameServer::Get().SetAnswers(true);
    NameServer::Get().AwaitAsked(0);
  }
  static PingPongPlan Plan(std::chrono::milliseconds timeout) {
    PingPongPlan plan;
    plan.token = std::string(32, 'a');
    plan.latency_samples = 1;
    plan.deadline = std::chrono::steady_clock::now() + timeout;
    return plan;
  }
  static absl::Status Measure(std::chrono::milliseconds timeout) {
    return MeasureTo(std::string(kHangs) + ":7", Plan(timeout)).status();
  }
};

TEST_F(NameResolutionTest, ANameCostsNoMoreThanTheDeadline) {
  const absl::Status status = Measure(std::chrono::milliseconds(50));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(kHangs));
  NameServer::Get().SetAnswers(true);
  const absl::Status unknown = Measure(std::chrono::minutes(1));
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnavailable) << unknown;
  EXPECT_THAT(std::string(unknown.message()), HasSubstr(gai_strerror(EAI_AGAIN)));
}

TEST_F(NameResolutionTest, TheStopOfTheAgentDoesNotWaitForAName) {
  v1::PingPongTask task;
  task.set_id(1);
  task.set_active(true);
  task.set_token(std::string(32, 'a'));
  task.set_latency_samples(1);
  task.set_peer_address(std::string(kHangs) + ":7");
  task.mutable_timeout()->set_seconds(600);
  {
    Measurer measurer(std::nullopt, PortChoice(), [](const v1::PingPongResult&) { ADD_FAILURE(); });
    measurer.Take(task);
    NameServer::Get().AwaitAsked(1);
  }
  NameServer::Get().AwaitAsked(1);  // still: its thread is left behind
}

TEST_F(NameResolutionTest, SoManyLookUpsMayHang) {
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(Measure(std::chrono::milliseconds(1)).code(), absl::StatusCode::kDeadlineExceeded);
  }
  NameServer::Get().AwaitAsked(16);
  const absl::Status refused = Measure(std::chrono::minutes(1));
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("name server"));
  const MeasuringLimit limit{std::chrono::steady_clock::now() + std::chrono::minutes(1), nullptr};
  EXPECT_TRUE(Resolve("127.0.0.1:7", limit).ok());  // asks nobody
}

TEST_F(NameResolutionTest, NumbersAndKnownNamesAreFound) {
  const MeasuringLimit limit{std::chrono::steady_clock::now() + std::chrono::minutes(1), nullptr};
  for (const char* const address : {"localhost:7", "127.0.0.1:7", "[::1]:7", "::1:7"}) {
    EXPECT_TRUE(Resolve(address, limit).ok()) << address;
  }
  EXPECT_EQ(Resolve("localhost", limit).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Resolve("no.such.host.invalid:7", limit).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(ResolveOwn(":7").ok());
}

}  // namespace
}  // namespace coppice
